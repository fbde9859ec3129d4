"""A file that is there whole, or as it was before: whoever reads it never meets half of it, whatever died meanwhile."""

import os
import secrets
from pathlib import Path


def write_whole(path: Path, text: str) -> None:
    """Puts `text` in the place of what `path` holds, durably. Raises OSError; then nothing has changed."""
    # In the same folder, since a rename is atomic only there; a name of its own, since two may write at once.
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        with temporary.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
