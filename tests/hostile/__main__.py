"""`make hostile`: every case, one after the other, as a table. Exits with 1 if one of them is not as it should be."""

import asyncio
import sys

from tests.hostile.case import MB, Case
from tests.hostile.groups import all_cases, number_of
from tests.hostile.measure import Measured, measured
from tests.hostile.playing import warm_up

ROW = "{:<6} {:<46} {:<16} {:<16} {:>8} {:>7} {:>8} {:>7}  {}"


async def main(wanted: list[str]) -> int:
    every = list(all_cases())
    if unknown := [each for each in wanted if not any(_is(case, each) for case in every)]:
        _show(f"there is no case {', '.join(unknown)}; they are numbers, and letters behind them, such as 13 or 28a")
        return 2
    cases = [case for case in every if not wanted or any(_is(case, each) for each in wanted)]
    _show(ROW.format("case", "what the peer does", "expected", "outcome", "ms", "of", "peak MB", "lag ms", ""))
    await warm_up()
    failed = 0
    for case in cases:
        seen = await measured(case)
        failed += bool(seen.flaws())
        _show(_row(seen))
    _show(f"\n{len(cases)} cases, {failed} not as they should be")
    return 1 if failed else 0


def _is(case: Case, wanted: str) -> bool:
    """A number is all of its letters, a letter all of its variants."""
    return str(number_of(case)[0]) == wanted if wanted.isdecimal() else case.id.startswith(wanted)


def _row(seen: Measured) -> str:
    case = seen.case
    flaws = seen.flaws()
    return ROW.format(
        case.id,
        case.name[:46],
        "/".join(sorted(case.expected)),
        seen.outcome,
        f"{seen.seconds * 1000:.0f}",
        f"{case.seconds * 1000:.0f}",
        f"{seen.peak_bytes / MB:.1f}/{case.memory_bytes // MB}",
        f"{seen.lag_s * 1000:.0f}",
        f"FAIL: {'; '.join(flaws)} ({seen.note[:200]})" if flaws else "ok",
    )


def _show(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(asyncio.run(main(sys.argv[1:])))
