"""`python -m services.controller`: the command, for where its environment is there already."""

import os
import sys

from gossamer.errors import SettingsError
from services.controller import cli
from services.controller.exits import Exit
from services.controller.main import obey


def main() -> int:
    try:
        command = cli.read(sys.argv[1:], os.environ)
    except SettingsError as wrong:
        sys.stderr.write(f"{cli.PROG}: {wrong}\n")
        return Exit.USAGE
    return obey(command)


if __name__ == "__main__":
    sys.exit(main())
