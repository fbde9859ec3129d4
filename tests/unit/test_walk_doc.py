"""docs/walk.md and the walk's table tell of the same files."""

from pathlib import Path

import pytest

from gossamer.walk import WALK

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("file", sorted({step.file for step in WALK}))
def test_the_docs_name_the_file_of_every_step(file: str) -> None:
    assert f"`{file}`" in (ROOT / "docs" / "walk.md").read_text()
