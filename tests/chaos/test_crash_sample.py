"""Of the crash suite (`make crash`) one crawl for each role and engine, on a smaller web."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack

import pytest

from gossamer.settings import Engine
from tests.chaos.crash.suite import Suite
from tests.chaos.crash.trial import Result, Trial, lane
from tests.system.stack import running_stack

TRIALS = (
    Trial(Engine.EXTERNAL, "controller.seed:after", 1),
    Trial(Engine.EXTERNAL, "frontier.send:before", 2),
    Trial(Engine.EXTERNAL, "worker.store:after", 2),
    Trial(Engine.EMBEDDED, "controller.announce:after", 1),
    Trial(Engine.EMBEDDED, "frontier.route:after", 2),
    Trial(Engine.EMBEDDED, "worker.finish:before", 4),
)
LANES = 3
SIZES = "3*8"


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mapping[Trial, Result]]:
    suite = Suite(TRIALS, lambda line: None)
    with ExitStack() as opened:
        stack = opened.enter_context(running_stack())
        folder = tmp_path_factory.mktemp("crash")
        suite.run([opened.enter_context(lane(folder / str(number), stack, SIZES)) for number in range(LANES)])
        yield suite.results


@pytest.mark.parametrize("trial", TRIALS, ids=str)
def test_a_crawl_that_dies_once_leaves_what_it_would_have_left(trial: Trial, results: Mapping[Trial, Result]) -> None:
    assert results[trial].failures == []
