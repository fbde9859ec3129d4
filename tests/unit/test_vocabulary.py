"""What `import gossamer` costs: the standard library, and little of it."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]

#: Without `site` there are no installed packages at all: importing one fails.
BARE = [sys.executable, "-I", "-S", "-c"]


def run(code: str) -> str:
    code = f"import sys; sys.path.insert(0, {str(ROOT)!r})\n{code}"
    done = subprocess.run([*BARE, code], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_modules_and_settings_need_nothing_installed(tmp_path: Path) -> None:
    file = tmp_path / "crawl.toml"
    file.write_text("max_pages = 5", encoding="utf-8")

    out = run(f"""
from pathlib import Path
from gossamer import Module, Page, __version__
from gossamer.options import keywords, parse_spec
from gossamer.settings import GROUPS, load
loaded = load({{"allow_net": "10.0.0.0/8"}}, {{"GOSSAMER_DELAY": "0"}}, Path({str(file)!r}))
print(loaded.settings.budgets.max_pages, loaded.shown()["delay"], __version__ != "")
""")

    assert out.split() == ["5", "0s", "True"]


def test_what_is_slow_to_import_waits_until_it_is_needed() -> None:
    out = run("import gossamer, gossamer.settings; print(*sorted(sys.modules))")

    assert {"asyncio", "argparse", "difflib", "tomllib", "msgspec", "ada_url"}.isdisjoint(out.split())
