"""One image for all stacks of the tests, built by the first of them as an operator's first start does, and removed in the end."""

import secrets
import subprocess
from collections.abc import Iterator

import pytest

from tests.compose.project import COMMAND_S, need_docker


@pytest.fixture(scope="session")
def image() -> Iterator[str]:
    need_docker()
    name = f"gossamer:test-{secrets.token_hex(4)}"
    yield name
    subprocess.run(["docker", "image", "rm", "--force", name], capture_output=True, timeout=COMMAND_S, check=False)
