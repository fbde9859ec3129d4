"""The model's quick set as tests: each scenario holds, and each deliberate bug is caught by the invariant that it breaks."""

import pytest

from gossamer.states import STEPS, State, Verb
from tests.model import verbs
from tests.model.bugs import BUGS, Bug
from tests.model.scenarios import DEEP, FULL, QUICK, SCENARIOS
from tests.model.search import explore
from tests.model.state import CLOSED, Ledger, Url, World


@pytest.mark.parametrize(
    ("scenario", "faults"),
    [
        pytest.param(name, k, id=f"{name} with at most {k} {'fault' if k == 1 else 'faults'}")
        for name, faults in QUICK.items()
        for k in faults
    ],
)
def test_everything_holds_in_every_state_and_from_each_the_end_can_be_reached(scenario: str, faults: int) -> None:
    report = explore(World(SCENARIOS[scenario], faults))

    assert not report.breach, "\n".join((report.breach, *report.trace))
    assert not report.cut


@pytest.mark.parametrize(
    ("name", "bug"),
    [pytest.param(name, bug, id=f"{bug.breaks} catches {name}") for name, bug in BUGS.items()],
)
def test_each_deliberate_bug_is_caught_by_the_invariant_that_it_breaks(name: str, bug: Bug) -> None:
    report = explore(World(SCENARIOS[bug.scenario], bug.faults, name))

    assert report.breach.startswith(bug.breaks), "\n".join((bug.what, report.breach or "everything held", *report.trace))


def test_every_scenario_is_in_a_plan_and_no_run_is_in_two() -> None:
    runs = [(name, k) for plan in (QUICK, FULL, DEEP) for name, faults in plan.items() for k in faults]

    assert {name for name, _ in runs} == set(SCENARIOS)
    assert len(runs) == len(set(runs))


def test_the_model_takes_every_step_of_the_table_of_states(monkeypatch: pytest.MonkeyPatch) -> None:
    """The other way round, that it takes no other, is asserted at each step that a search takes."""
    taken: set[tuple[str, str, str]] = set()
    set_url = verbs.set_url

    def recorded(world: World, ledger: Ledger, url: int, new: Url, verb: str) -> Ledger:
        after = State.CLOSED.name if new.state in CLOSED else new.state
        taken.add((ledger.urls[url].state, verb, after))
        return set_url(world, ledger, url, new, verb)

    monkeypatch.setattr(verbs, "set_url", recorded)
    for name in ("robots", "defer", "deadly page", "failing domain", "shed", "lonely release", "impatient"):
        explore(World(SCENARIOS[name]), limit=4_000)

    # The model has one robots.txt for a domain, which is known by the time that the domain can be given up.
    beyond = {(State.ROUTED.name, Verb.KNOCK.value, State.CLOSED.name)}
    assert verbs.LEGAL - taken == beyond
    assert len(verbs.LEGAL) == sum(len(after) for after in STEPS.values())
