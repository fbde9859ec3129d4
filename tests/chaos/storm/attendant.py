"""The attendant: keeps a crawl's controller going, as an operator would, until the crawl is complete.

A controller that ended, whatever ended it, is started again with `resume`. The crawl has a page budget at first, which is raised
when it was met: so budgets are met, or not, in the storm.
"""

import asyncio
import json
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from gossamer.ids import CrawlId
from services.controller.exits import Exit
from tests.servers.watchdog import Watchdog
from tests.system.stack import crawl_in
from tests.system.web import REPORT, command

#: Before it is started again: an operator, or a restart policy, takes some time too.
PAUSE_S: Final = 0.5
LOG: Final = "controller.log"
#: What a storm may do to a controller: it was killed, or found that a server is away.
EXPECTED: Final = (-9, Exit.UNREACHABLE)


class Attendant:
    def __init__(
        self, folder: Path, start: Sequence[str], environ: Mapping[str, str], budgets: Sequence[int], say: Callable[[str], None]
    ) -> None:
        self._folder, self._start, self._environ, self._say = folder, start, environ, say
        self._budgets = list(budgets)  # those that are still to be met; the last one is more than there is
        self._process: asyncio.subprocess.Process | None = None
        self.met: list[tuple[int, int]] = []  #: budgets, each with the pages that were then stored
        self.flaws: list[str] = []  #: what a storm is no excuse for
        self.resumes = 0

    @property
    def crawl(self) -> CrawlId:
        return crawl_in(self._folder)

    @property
    def has_begun(self) -> bool:
        return (self._folder / "state" / "crawl.json").exists()

    @property
    def pid(self) -> int | None:
        """The controller's process, while it lives."""
        process = self._process
        return process.pid if process is not None and process.returncode is None else None

    @property
    def budget(self) -> int:
        """In pages, as it now is."""
        return self._budgets[0]

    async def keep(self) -> None:
        """Until the crawl is complete."""
        words: Sequence[str] = self._start
        while True:
            code = await self._run(*words, "--max-pages", str(self.budget))
            report = self._report()
            outcome = report.get("outcome")
            if code == Exit.DONE and outcome == "complete":
                return
            if code == Exit.DONE and outcome == "page_budget":
                budget = self._budgets.pop(0)
                self.met.append((budget, report["pages"]))
                self._say(f"the budget of {budget} pages was met with {report['pages']}")
            elif code not in EXPECTED:
                self.flaws.append(f"the controller ended with exit code {code}, outcome {outcome}; see {self._folder / LOG}")
                self._say(self.flaws[-1])
            await asyncio.sleep(PAUSE_S)
            words = ("resume", "--state", "state")
            self.resumes += 1
            self._say(f"resume, after exit code {code}")

    def kill(self) -> None:
        if self._process is not None and self._process.returncode is None:
            self._process.kill()

    async def _run(self, *words: str) -> int:
        (self._folder / REPORT).unlink(missing_ok=True)
        with (self._folder / LOG).open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                *command(*words, "--report", REPORT),
                cwd=self._folder,
                env={**os.environ, **self._environ},
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=asyncio.subprocess.STDOUT,
                start_new_session=True,  # Ctrl-C is the storm's to hear
            )
        watchdog = Watchdog(f"kill -9 {self._process.pid}")  # its roles end by themselves when it is gone
        try:
            return await self._process.wait()
        finally:
            watchdog.call_off()

    def _report(self) -> dict[str, Any]:
        file = self._folder / REPORT
        report: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {}
        return report
