"""Every case of every group: whatever file of this folder has `CASES`."""

import pkgutil
import re
from importlib import import_module

from tests import hostile
from tests.hostile.case import Case


def all_cases() -> list[Case]:
    """By their numbers."""
    names = [each.name for each in pkgutil.iter_modules(hostile.__path__) if not each.name.startswith(("__", "test_"))]
    cases = [case for name in names for case in getattr(import_module(f"tests.hostile.{name}"), "CASES", ())]
    assert len({case.id for case in cases}) == len(cases), "an id is used twice"
    return sorted(cases, key=lambda case: (*number_of(case), case.id))


def number_of(case: Case) -> tuple[int, str]:
    """Its number and its letter."""
    found = re.match(r"(\d+)([a-z]?)", case.id)
    assert found is not None, case.id
    return int(found[1]), found[2]
