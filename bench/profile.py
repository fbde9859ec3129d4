"""Where a crawl's CPU time goes: by area, by function, and as a flame graph.

    python -m bench.profile [--pages 1000] [--out out/profile.html] [flags of the crawl …]

Crawls a synthetic web, embedded, with everything on, in a process that is looked at whenever it has spent two milliseconds more of
CPU time: what each of its threads has spent since the last look, by the thread's own clock, goes to the stack that it is in. So the
threads of the ledger and of the blob store are seen as well; what they did that was over by the next look stands as the time of
`_worker`, which hands them their calls. Looks come between two of Python's instructions: the time of a call into C is its caller's.
"""

import argparse
import html
import json
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import Final, TypeVar

import controller
from tests.system.web import ROOT, synthetic_web

LOOK_EVERY_S: Final = 0.002
FREELY: Final = ("--delay", "0", "--allow-net", "127.0.0.0/8", "--max-bytes", "100GB", "--duplicate-links", "follow")
TOP: Final = 10
#: Boxes of less than this share of all are left out of the graph.
BOX_MIN: Final = 0.002


def _worker(*names: str) -> tuple[str, ...]:
    return tuple(f"services/worker/{name}.py" for name in names)


EVENT_LOOP: Final = "event loop"
START: Final = "imports"
OTHER: Final = "other"
#: By the innermost of our own files on the stack: whatever a library does there is done for it.
AREAS: Final[Mapping[str, tuple[str, ...]]] = {
    "fetch": _worker("download", "multi", "resolve", "addresses", "requests", "fetch", "pacing", "meaning"),
    "robots": _worker("permission", "robotstxt", "errands"),
    "decode": _worker("decode", "charsets", "types", "guard"),
    "parse": _worker("parse", "read"),
    "links": (*_worker("links"), "gossamer/urls.py"),
    "sketch": _worker("sketch"),
    "ledger": ("adapters/embedded/ledger.py", "adapters/embedded/verbs/", "adapters/patience.py"),
    "blobs": (*_worker("store"), "adapters/embedded/blobs.py", "adapters/warc.py", "adapters/segments.py"),
    "frontier": ("services/frontier/", "adapters/embedded/broker.py", "gossamer/hints.py", "gossamer/messages.py"),
    "walk": ("services/worker/", "gossamer/together.py", "gossamer/clock.py"),
    "controller": ("services/controller/", "services/role/", "controller.py"),
}

#: A call: file, from the repository's root if it is ours, and function.
Call = tuple[str, str]
#: Outermost first, below the name of the thread.
Stack = tuple[Call, ...]

K = TypeVar("K")


def area(stack: Stack) -> str:
    """Whose time it is. What the event loop does between its callbacks is its own."""
    if any(file.startswith("<frozen importlib") for file, _ in stack):
        return START
    for file, function in reversed(stack):
        if function == "_run_once" and file.endswith("base_events.py"):
            return EVENT_LOOP
        for name, files in AREAS.items():
            if file.startswith(files):
                return name
    # A thread of the ledger's or the store's that is on its way to its next call.
    return stack[0][1] if stack and stack[0][1] in AREAS else OTHER


# --- Inside of the process that crawls ---


class Sampler:
    """Looks at all threads whenever the process has spent a little more CPU time, which no thread that waits does.

    By a signal and not from a thread of its own: that would be served when the crawl has nothing else to do, and find it waiting.
    """

    def __init__(self) -> None:
        self._spent_s: dict[Stack, float] = {}
        self._before_ns: dict[int, int] = {}

    def start(self) -> None:
        self._began_s = time.process_time()
        self._before_ns[threading.get_ident()] = time.thread_time_ns()
        signal.signal(signal.SIGPROF, self._look)
        signal.siginterrupt(signal.SIGPROF, False)
        signal.setitimer(signal.ITIMER_PROF, LOOK_EVERY_S, LOOK_EVERY_S)

    def write(self, path: Path) -> None:
        signal.setitimer(signal.ITIMER_PROF, 0)
        told = [[list(stack), spent_s] for stack, spent_s in self._spent_s.items()]
        path.write_text(json.dumps({"cpu_s": time.process_time() - self._began_s, "stacks": told}))

    def _look(self, _signal: int, interrupted: FrameType | None) -> None:
        """In the main thread, between two of its instructions."""
        main = threading.main_thread().ident
        names = {thread.ident: thread.name.partition("_")[0] for thread in threading.enumerate()}
        for ident, frame in sys._current_frames().items():
            self._note(ident, names.get(ident, "?"), interrupted if ident == main else frame)
        self._before_ns[main or 0] = time.thread_time_ns()  # what the look itself has cost is not the crawl's

    def _note(self, ident: int, thread: str, frame: FrameType | None) -> None:
        try:
            now_ns = time.clock_gettime_ns(time.pthread_getcpuclockid(ident))
        except OSError:  # it has ended meanwhile
            return
        spent_ns = now_ns - self._before_ns.get(ident, 0)
        self._before_ns[ident] = now_ns
        if spent_ns > 0:
            stack = stack_of(thread, frame)
            self._spent_s[stack] = self._spent_s.get(stack, 0.0) + spent_ns / 1e9


def stack_of(thread: str, frame: FrameType | None) -> Stack:
    calls: list[Call] = []
    while frame is not None:
        code = frame.f_code
        calls.append((code.co_filename.removeprefix(f"{ROOT}/"), code.co_name))
        frame = frame.f_back
    return (("", thread), *reversed(calls))


def crawl(figures: Path, words: Sequence[str]) -> int:
    """The crawl's exit code."""
    sampler = Sampler()
    sampler.start()
    sys.argv = ["controller.py", *words]
    code = controller.main()
    sampler.write(figures)
    return code


# --- What was seen ---


def by_area(stacks: Mapping[Stack, float]) -> dict[str, float]:
    """The dearest first, as below."""
    return _summed((area(stack), spent_s) for stack, spent_s in stacks.items())


def by_function(stacks: Mapping[Stack, float]) -> dict[Call, float]:
    """The time of functions themselves, and of the C that they call."""
    return _summed((stack[-1], spent_s) for stack, spent_s in stacks.items())


def _summed(figures: Iterable[tuple[K, float]]) -> dict[K, float]:
    spent: dict[K, float] = {}
    for key, spent_s in figures:
        spent[key] = spent.get(key, 0.0) + spent_s
    return dict(sorted(spent.items(), key=lambda each: -each[1]))


def graph(stacks: Mapping[Stack, float], title: str) -> str:
    """A page of boxes: as wide as their time, callers above those they call. Needs nothing but a browser."""
    whole = sum(stacks.values())
    boxes = "\n".join(_boxes(stacks, 0, 0.0, whole))
    return (
        f"<!doctype html><meta charset=utf-8><title>{html.escape(title)}</title><style>"
        "body{font:12px sans-serif;margin:8px}div{position:absolute;height:15px;overflow:hidden;white-space:nowrap;"
        "box-sizing:border-box;border:1px solid #fff;background:#f4b87a;border-radius:2px}div.ours{background:#8fbf8f}"
        f"</style><h3>{html.escape(title)}</h3><p>Green: our own code. Hover for the time.</p>"
        f'<section style="position:relative">\n{boxes}\n</section>\n'
    )


def _boxes(stacks: Mapping[Stack, float], depth: int, left: float, whole: float) -> Iterator[str]:
    below: dict[Call, dict[Stack, float]] = {}
    for stack, spent_s in stacks.items():
        if len(stack) > depth:
            below.setdefault(stack[depth], {})[stack] = spent_s
    for (file, function), some in sorted(below.items(), key=lambda each: -sum(each[1].values())):
        spent_s = sum(some.values())
        if spent_s / whole >= BOX_MIN:
            label = html.escape(f"{function} ({file}) {spent_s:.3f} s, {spent_s / whole:.1%}", quote=True)
            kind = "" if file.startswith(("/", "<")) else " class=ours"
            place = f"left:{left / whole:.4%};width:{spent_s / whole:.4%};top:{depth * 16}px"
            yield f'<div{kind} style="{place}" title="{label}">{html.escape(function)}</div>'
            yield from _boxes(some, depth + 1, left, whole)
        left += spent_s


def main(words: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m bench.profile",
        usage="%(prog)s [--pages PAGES] [--sites SITES] [--out OUT] [flags of the crawl ...]",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,  # all other flags are the crawl's
    )
    parser.add_argument("--pages", type=int, default=1000, help="of the web, 1000 unless given; of few, most is the start")
    parser.add_argument("--sites", type=int, default=20, help="that these are on, 20 unless given")
    parser.add_argument("--out", type=Path, default=Path("out/profile.html"), help="the flame graph")
    given, flags = parser.parse_known_args(words)
    if not 1 <= given.sites <= given.pages:
        parser.error("a web has a site at least, and each site a page at least")
    if given.out.is_dir():
        parser.error(f"{given.out} is a folder")
    with (
        tempfile.TemporaryDirectory() as name,
        synthetic_web(Path(name), "--sites", str(given.sites), "--pages", str(given.pages), "--seed", "1") as web,
    ):
        figures, report = Path(name) / "figures.json", Path(name) / "report.json"
        command = [sys.executable, "-m", "bench.profile", INSIDE, str(figures), "--seed", web.seeds[0]]
        budget = ("--max-pages", str(2 * given.pages))
        state = ("--state", f"{name}/state", "--report", str(report))
        done = subprocess.run([*command, *FREELY, *budget, *state, *flags], cwd=ROOT, stdout=subprocess.DEVNULL, check=False)
        if done.returncode != 0:
            return done.returncode
        seen = json.loads(figures.read_text())
        pages = json.loads(report.read_text())["pages"]
    stacks = {tuple((file, function) for file, function in stack): spent_s for stack, spent_s in seen["stacks"]}
    given.out.parent.mkdir(parents=True, exist_ok=True)
    title = f"{pages:,} pages: {seen['cpu_s']:.2f} s of CPU time, {sum(stacks.values()):.2f} s of it sampled"
    given.out.write_text(graph(stacks, title), encoding="utf-8")
    told(stacks, pages, title)
    print(f"\nThe flame graph: {given.out.resolve()}")
    return 0


def told(stacks: Mapping[Stack, float], pages: int, title: str) -> None:
    whole = sum(stacks.values())
    print(f"{title}\n\n| area | CPU ms/page | share |\n|---|--:|--:|")
    for name, spent_s in by_area(stacks).items():
        print(f"| {name} | {spent_s * 1000 / pages:.3f} | {spent_s / whole:.1%} |")
    print("\n| the time of functions themselves | CPU ms/page | share |\n|---|--:|--:|")
    for (file, function), spent_s in list(by_function(stacks).items())[:TOP]:
        print(f"| {_short(file)}: {function} | {spent_s * 1000 / pages:.3f} | {spent_s / whole:.1%} |")
    print("\n`_worker` is what threads did for the ledger and the blob store: commits and writes, which wait for the disk.")


def _short(file: str) -> str:
    """With its folder, if it is in one."""
    return "/".join(Path(file).parts[-2:])


INSIDE: Final = "--inside"

if __name__ == "__main__":
    if sys.argv[1:2] == [INSIDE]:
        sys.exit(crawl(Path(sys.argv[2]), sys.argv[3:]))
    else:
        sys.exit(main(sys.argv[1:]))
