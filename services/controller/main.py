"""What the command does, once its environment is there: start a crawl, go on with one, look at one, stop one.

Here the parts of the controller are put together, and errors become exit codes. Whatever is wrong with what the operator gave is
said in one line before anything is made.
Must not know: how a crawl is run (`run`), what an engine is made of, or what anything looks like.
"""

import asyncio
import secrets
import sys
from dataclasses import replace
from typing import assert_never

from adapters import wiring
from gossamer.clock import SystemClock
from gossamer.errors import EngineUnavailable, SettingsError
from gossamer.outcomes import CrawlOutcome
from gossamer.settings import Settings
from gossamer.urls import host_of
from services.controller import cli, crawls, kept
from services.controller.crawls import Place
from services.controller.dry_run import dry_run
from services.controller.engines import Maker
from services.controller.exits import Exit
from services.controller.inputs import checked
from services.controller.outside import Outside
from services.controller.reading import begun, glance
from services.controller.run import run
from services.controller.status import status_json, status_text
from services.controller.stopping import stop
from services.controller.wording import moment, safe


def obey(command: cli.Command, outside: Outside | None = None) -> Exit:
    """Does what is asked for. A bug of ours is not caught: it ends the process with its traceback, and with 1."""
    at = outside or _outside()
    try:
        return asyncio.run(_obey(command, at))
    except SettingsError as wrong:
        return _complain(at, str(wrong), Exit.USAGE)
    except Exception as error:
        if (away := _unavailable(error)) is not None:
            return _complain(at, str(away), Exit.UNREACHABLE)
        raise


async def _obey(command: cli.Command, at: Outside) -> Exit:
    match command:
        case cli.Say(text=text):
            at.stdout.write(text)
            return Exit.DONE
        case cli.Start():
            return await _start(command, at)
        case cli.Resume(where=where):
            return await _resume(_find(where), command, at)
        case cli.Status(where=where, json=json):
            place = _find(where)
            at.stdout.write((status_json if json else status_text)(place, await glance(place, at)))
            return Exit.DONE
        case cli.Stop(where=where):
            return await stop(_find(where), at)
        case _:
            assert_never(command)


async def _start(command: cli.Start, at: Outside) -> Exit:
    settings = checked(command.loaded.settings)
    at.maker().check(settings)
    if command.dry_run:
        at.stdout.write(dry_run(command.loaded, settings.start.seeds))
        return Exit.DONE
    await _sweep(at)
    id = crawls.new_id(at.clock.now(), host_of(settings.start.seeds[0]), at.token())
    with crawls.begin(id, settings.storage.state, settings.start.seeds) as place:
        return await run(place, settings, at, resume=False)


async def _resume(place: Place, command: cli.Resume, at: Outside) -> Exit:
    with crawls.hold(place.folder):
        record = await begun(place, at)
        if record is None:
            crawls.remove(place)  # or its folder could not be used again
            raise SettingsError(f"crawl {place.id} had not begun when it was killed; start it again")
        if record.kept_until < at.clock.now():
            raise SettingsError(f"crawl {place.id} was kept until {moment(record.kept_until)}; start it again (--ttl keeps longer)")
        settings = checked(_with_seeds(kept.from_text(record.rules.settings, command.flags).settings, place))
        at.maker().check(settings)
        if record.outcome is CrawlOutcome.COMPLETE:
            # Run all the same: the last one may have been killed before its outputs were merged.
            at.stdout.write(f"Crawl {place.id} is complete already; nothing is left to fetch.\n")
        return await run(place, settings, at, resume=True)


def _with_seeds(settings: Settings, place: Place) -> Settings:
    return replace(settings, start=replace(settings.start, seeds=place.seeds))


async def _sweep(at: Outside) -> None:
    """Removes the crawls here whose time is over. Those in folders of `--state` are their owners' business."""
    for place in crawls.all_here():
        try:
            with crawls.hold(place.folder):
                record = await begun(place, at)
                if record is None or record.kept_until < at.clock.now():
                    crawls.remove(place)
        except SettingsError:
            pass  # it runs
        except Exception as error:  # whatever is wrong with an old crawl must not keep a new one from beginning
            at.stderr.write(f"{place.folder} can't be read, and was left as it is: {safe(str(error))}\n")


def _find(where: cli.Where) -> Place:
    return crawls.find(where.crawl, where.state)


def _unavailable(error: BaseException) -> EngineUnavailable | None:
    """What is away, if that is why: alone, or as one of those that a group of tasks ended with."""
    if isinstance(error, EngineUnavailable):
        return error
    inner = error.exceptions if isinstance(error, BaseExceptionGroup) else ()
    return next((found for each in inner if (found := _unavailable(each)) is not None), None)


def _complain(at: Outside, text: str, code: Exit) -> Exit:
    at.stderr.write(f"{cli.PROG}: {text}\n")
    return code


def _outside() -> Outside:
    return Outside(
        stdout=sys.stdout,
        stderr=sys.stderr,
        clock=SystemClock(),
        token=lambda: secrets.token_hex(2),
        maker=_embedded,
        open_ledger=wiring.open_ledger,
    )


def _embedded() -> Maker:
    from services.controller.engines import embedded

    return embedded
