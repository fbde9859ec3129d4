"""An explicit-state model of the protocol: every order of steps, every crash window, every invariant.

The ledger's verbs are pure functions on an immutable state (`verbs`, over the values in `state`); the broker's queues are small
multisets of hints; frontiers, workers and controller are step machines that can be killed between any two steps (`processes`).
`search.explore` visits every state that a scenario can reach with at most `k` faults, breadth first, so that a counterexample is
as short as can be. It checks

- in every state and on every step: I1-I7 as safety properties (`invariants`);
- over the whole graph: from every state, with no further fault, the end of the crawl can be reached. A state from which it
  can't is a deadlock or a loop without exit; if there is none, every fair schedule ends. Fair: what can happen again and again
  does happen at last. A suspect, which waits until its worker does nothing else, depends on that.

What is abstracted, and why nothing is hidden by it:

- **Time** is events. "The delay has passed" (`cool`), "not_before has passed" (`held` ends) and "the lease is over" happen at any
  moment at which they could. A frozen process is one that isn't scheduled while its lease runs out.
- **Owner** of a domain: while `out` > 0 the worker of its URLs; else any worker with room, which covers `owner_until` and load.
- **Epochs** are compared, never counted: a worker's is the newest of its id or it is not. What a lapse is blamed on is a seat: an
  id, or an id that somebody else has by now. With at most two processes that names one lapse.
- **Counts** (`out`, load, open) are read off the URLs; those that a bug could get wrong (`stored`, `reserved`, `flying`, `spent`)
  are kept. Bytes are counted in caps, and every request costs a whole one.
- `rested` and `asked` are no fields of the ledger but the servers' view: the last request began at least `delay` ago; how many
  requests there were.
- **Windows** 9-11 are one state here: what is between `judge` and `finish` doesn't touch the ledger. In row 15 a thawed worker
  reads its clock before it dials; the request that slips through between the two is the one thing that isn't modelled. A lease
  that `resume` voids is another matter: the worker's clock knows nothing of it, and its request does go out.
- **Batches** are single URLs: a verb on several is the same verb several times with nothing in between.
- **Priorities** are anything: where `ranked`, each parked URL may be the best and each waiting one asked for first, which is all
  that `rank` can change. `shed` takes any URL that it may take, at any time.
- **Failures** of a domain: an answer that fails or defers. A rest is `held`; that it doubles is time, and time is events. A good
  answer is a page that was read.
- **Dying** is the page's nature (`deadly`, `stunning`; so may robots.txt be), costs no fault and happens each time; or chance,
  and then it is a fault. One innocent page needs a fault to become a suspect and one more for each death that is counted; if
  fewer have happened, its being closed as poison is a breach.
- **A ledger that forgets** its last second isn't here; nor is a process with several workers: each worker is its own.
- **Named leases**, `refused` and what display and report read decide nothing about a URL, and aren't here.

    python -m tests.model.protocol_model                 the quick set, then every deliberate bug and what
                                                         catches it (about a minute)
    python -m tests.model.protocol_model --full          more faults and larger scenarios (some eight minutes)
    python -m tests.model.protocol_model --deep          the largest as well (some fourteen more)
    python -m tests.model.protocol_model --scenario NAME --faults K
    python -m tests.model.protocol_model --bug NAME --trace
"""

import argparse
import sys

from tests.model.bugs import BUGS
from tests.model.scenarios import DEEP, FULL, QUICK, SCENARIOS
from tests.model.search import Report, explore
from tests.model.state import World


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def show(report: Report) -> None:
    for n, label in enumerate(report.trace, 1):
        say(f"    {n:3}  {label}")
    say(f"         => {report.breach}")


def check_protocol(plan: list[tuple[str, int]], limit: int) -> bool:
    good, total = True, 0
    say(f"{'scenario':<18} {'faults':>6} {'states':>9} {'steps':>9} {'s':>6}  result")
    for name, faults in plan:
        report = explore(World(SCENARIOS[name], faults), limit)
        result = report.breach or ("safe so far (cut: liveness not checked)" if report.cut else "holds")
        say(f"{name:<18} {faults:>6} {report.states:>9} {report.steps:>9} {report.seconds:>6.1f}  {result}")
        total += report.states
        if report.breach:
            good = False
            show(report)
    say(f"{total} states\n")
    return good


def check_bugs(chosen: tuple[str, ...], trace: bool) -> bool:
    good = True
    say(f"{'bug':<31} {'scenario':<17} {'faults':>6} {'trace':>5}  caught by")
    for name in chosen:
        bug = BUGS[name]
        report = explore(World(SCENARIOS[bug.scenario], bug.faults, name))
        caught = report.breach.startswith(bug.breaks)
        verdict = report.breach if caught else f"NOT CAUGHT ({report.breach or 'everything held'}; expected {bug.breaks})"
        say(f"{name:<31} {bug.scenario:<17} {bug.faults:>6} {len(report.trace):>5}  {verdict}")
        if trace or not caught:
            say(f"    {bug.what}")
            show(report)
        good = good and caught
    return good


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.model.protocol_model",
        description="Explores the protocol's crash windows and checks I1-I7 in every state.",
    )
    parser.add_argument("--full", action="store_true", help="more faults and larger scenarios: some eight minutes")
    parser.add_argument("--deep", action="store_true", help="the largest as well: some fourteen minutes more")
    parser.add_argument(
        "--limit", type=int, default=3_000_000, metavar="N", help="stop a scenario after N states (default %(default)s)"
    )
    parser.add_argument("--scenario", choices=SCENARIOS, metavar="NAME", help=f"one of: {', '.join(SCENARIOS)}")
    parser.add_argument("--faults", type=int, default=1, metavar="K", help="faults per run, with --scenario (default %(default)s)")
    parser.add_argument(
        "--bug", choices=BUGS, metavar="NAME", help="switch on one deliberate bug; the table of a plain run lists them"
    )
    parser.add_argument("--trace", action="store_true", help="print the steps that lead to the bug's breach")
    options = parser.parse_args()
    if options.bug:
        return 0 if check_bugs((options.bug,), options.trace) else 1
    if options.scenario:
        return 0 if check_protocol([(options.scenario, options.faults)], options.limit) else 1
    plans = [QUICK, FULL, DEEP] if options.deep else [QUICK, FULL] if options.full else [QUICK]
    plan = [(name, k) for plan in plans for name, faults in plan.items() for k in faults]
    holds = check_protocol(plan, options.limit)
    caught = check_bugs(tuple(BUGS), options.trace)
    return 0 if holds and caught else 1


if __name__ == "__main__":
    sys.exit(main())
