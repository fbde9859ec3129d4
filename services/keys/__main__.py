"""`python -m services.keys`: hands out the keys, makes folders writable, and waits for its end."""

import os
import signal
import sys
from pathlib import Path
from typing import Final

from services.keys.credentials import WrongSecret, addresses, kept_in, with_given
from services.keys.files import UIDS, contents, hand_out
from services.keys.folders import give, share

KEYS: Final = Path("/keys")  #: a volume of our own, and one below it for each other container
DATA: Final = Path("/data")  #: volumes that servers keep their data in
OUT: Final = Path("/out")

#: What the health check looks for. In memory, so that one of an earlier start is not taken for ours.
READY: Final = Path("/tmp/ready")


def main() -> int:
    # Before anything else: a process that is a container's first does not end by a signal that it does not ask for.
    ends = (signal.SIGTERM, signal.SIGINT)
    signal.pthread_sigmask(signal.SIG_BLOCK, ends)
    os.umask(0o077)
    try:
        known = with_given(kept_in(KEYS / "own" / "secrets.json"), os.environ)
        hand_out(KEYS, contents(known, addresses(known, os.environ)))
        for folder in DATA.iterdir():
            give(folder, UIDS["s3"])
        shared = share(OUT, UIDS["roles"])
    except WrongSecret as wrong:
        return _complain(str(wrong), 2)
    except (OSError, ValueError, TypeError) as error:  # ValueError and TypeError: what was kept is no longer what it was
        return _complain(f"the keys can't be handed out: {type(error).__name__}: {_plain(error)}", 1)
    READY.touch()
    sys.stderr.write("services.keys: every server and role has its keys\n")
    if not shared:
        sys.stderr.write("services.keys: ./out lies on a file system without access control lists; everybody may write there now\n")
    signal.sigwait(ends)
    return 0


def _plain(error: Exception) -> str:
    """Of an error in JSON only that it is one: its text could show a piece of what was read."""
    return f"{error.strerror}: {error.filename}" if isinstance(error, OSError) else "secrets.json is damaged"


def _complain(text: str, code: int) -> int:
    sys.stderr.write(f"services.keys: {text}\n")
    return code


if __name__ == "__main__":
    sys.exit(main())
