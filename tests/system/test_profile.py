"""`make profile`: the crawl that is looked at ends as any, and what was seen of it is told."""

import subprocess
import sys
from pathlib import Path

from tests.system.web import ROOT


def test_a_profile_is_told_by_area_and_drawn(tmp_path: Path) -> None:
    graph = tmp_path / "profile.html"
    words = ("--pages", "20", "--sites", "2", "--out", str(graph))

    done = subprocess.run(
        [sys.executable, "-m", "bench.profile", *words], cwd=ROOT, capture_output=True, text=True, timeout=120, check=False
    )

    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("20 pages: ")
    assert "| ledger |" in done.stdout
    assert graph.read_text().startswith("<!doctype html>")
