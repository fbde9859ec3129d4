"""Exit codes: what a program that started a crawl learns without reading a word.

Standard library only, since `--help` shows them. Must not know: how a crawl is run, or why it ended so.
"""

from enum import IntEnum
from typing import assert_never

from gossamer.outcomes import CrawlOutcome


class Exit(IntEnum):
    """How the command ended. Its `meaning` is what `--help` says."""

    meaning: str

    def __new__(cls, code: int, meaning: str = "") -> "Exit":
        member = int.__new__(cls, code)
        member._value_ = code
        member.meaning = meaning
        return member

    DONE = 0, "the crawl is complete, or ended by a budget or by `stop`"
    INTERNAL = 1, "something is broken here: a bug, or an environment that can't be made"
    USAGE = 2, "something in the command, the environment or the settings file is wrong; nothing was started"
    UNREACHABLE = 4, "a server, or the disk, that the crawl stands on can't be reached, or is full"
    SEEDS_FAILED = 5, "every seed failed"
    STALLED = 6, "stalled: URLs are open, none of them waits for a time, and nothing has moved for minutes"
    INCOMPLETE = 7, "export: pages are missing, gone from the store or damaged there; the others were copied"
    INTERRUPTED = 130, "interrupted by Ctrl-C or SIGTERM; `resume` goes on from there"


def exit_of(outcome: CrawlOutcome, *, seeds_failed: bool, interrupted: bool) -> Exit:
    """What a crawl's end means for whoever started it. Interrupted is one that *we* were told to stop; `stop` is another's."""
    match outcome:
        case CrawlOutcome.COMPLETE | CrawlOutcome.PAGE_BUDGET | CrawlOutcome.BYTE_BUDGET:
            return Exit.DONE
        case CrawlOutcome.STOPPED:
            return Exit.INTERRUPTED if interrupted else Exit.DONE
        case CrawlOutcome.STALLED:
            return Exit.STALLED
        case CrawlOutcome.FAILED:
            return Exit.SEEDS_FAILED if seeds_failed else Exit.INTERNAL
        case _:
            assert_never(outcome)
