#!/usr/bin/env python3
"""The command: `python controller.py --seed URL --workers N --module NAME`; `--help` tells the rest.

It has to start with whatever Python there is, so until the project's environment is there it uses the standard library alone,
and imports each part when it is needed: help is there at once. What is wrong with the command line is said before the environment
is made, which takes a minute the first time. Exit codes are those of `services.controller.exits`.
"""

import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent


def main() -> int:
    if sys.version_info < (3, 11):  # noqa: UP036  # whoever is told so runs an older one
        return complain("Python 3.11 or newer is needed; this is %d.%d" % sys.version_info[:2], 2)  # noqa: UP031
    if str(ROOT) not in sys.path:  # started with -I or -P
        sys.path.insert(0, str(ROOT))

    from gossamer.errors import SettingsError
    from services.controller import cli

    try:
        command = cli.read(sys.argv[1:], os.environ)
    except SettingsError as wrong:
        return complain(str(wrong), 2)
    if isinstance(command, cli.Say):
        sys.stdout.write(command.text)
        return 0

    from services.controller import environment

    try:
        environment.enter(ROOT, [str(ROOT / "controller.py"), *sys.argv[1:]], lambda text: sys.stderr.write(text + "\n"))
    except environment.EnvironmentFailed as failed:
        return complain(str(failed), 1)

    from services.controller.main import obey  # only now: it needs what is installed

    return obey(command)


def complain(text: str, code: int) -> int:
    sys.stderr.write("controller.py: " + text + "\n")
    return code


def end(code: int) -> None:
    """At once: Python would first take apart all that was imported. It complains of what can't be written any more."""
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except OSError:
        sys.exit(code)
    os._exit(code)


if __name__ == "__main__":
    try:
        ended = main()
    except KeyboardInterrupt:  # before or after the crawl, which sees to it by itself
        ended = 130
    end(ended)
