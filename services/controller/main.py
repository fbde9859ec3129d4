"""What the command does, once its environment is there: start a crawl, go on with one, look at one, stop one.

Here the parts of the controller are put together, and errors become exit codes. Whatever is wrong with what the operator gave is
said in one line before anything is made.
Must not know: how a crawl is run (`run`), what an engine is made of, or what anything looks like.
"""

import asyncio
import os
import secrets
import sys
from dataclasses import replace
from typing import Final, assert_never

from adapters import wiring
from gossamer import kept
from gossamer.clock import Clock, SystemClock
from gossamer.errors import EngineUnavailable, SettingsError
from gossamer.outcomes import CrawlOutcome
from gossamer.ports.blobs import Blobs
from gossamer.ports.broker import Broker
from gossamer.ports.ledger import Ledger
from gossamer.records import CrawlRecord
from gossamer.settings import Engine, Settings, Storage
from gossamer.urls import host_of
from services.controller import cli, compose, crawls
from services.controller.crawls import Place
from services.controller.engines import Maker
from services.controller.exits import Exit
from services.controller.export.files import Target
from services.controller.inputs import checked
from services.controller.outside import Outside
from services.controller.reading import begun, glance
from services.controller.run import run
from services.controller.servers import named_in, with_rank_api_key, with_servers
from services.controller.wording import moment, safe

UNKNOWN_KEPT_S: Final = 86_400.0


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
            if place.engine is Engine.COMPOSE:
                return await compose.ask(place, "status", *(["--json"] if json else []))
            from services.controller.status import status_json, status_text  # of no use to a crawl

            at.stdout.write((status_json if json else status_text)(place, await glance(place, at)))
            return Exit.DONE
        case cli.Stop(where=where):
            place = _find(where)
            if place.engine is Engine.COMPOSE:
                return await compose.ask(place, "stop")
            from services.controller.stopping import stop  # of no use to a crawl

            return await stop(place, at)
        case cli.Explain():
            return await _explain(command, at)
        case cli.Export(where=where, target=target, force=force):
            return await _export(_find(where), target, at, force=force)
        case cli.DeadLetters(where=where, json=json):
            place = _find(where)
            if place.engine is Engine.COMPOSE:
                return await compose.ask(place, "dead-letters", *(["--json"] if json else []))
            from services.controller.dead_letters import letters, letters_json, letters_text  # of no use to a crawl

            at.stdout.write((letters_json if json else letters_text)(place, await letters(place, at)))
            return Exit.DONE
        case cli.Up(start=start):
            return await _up(start, at)
        case _:
            assert_never(command)


async def _explain(command: cli.Explain, at: Outside) -> Exit:
    from services.controller.explain import asking, fields, words  # they ask the rules of all services

    shown = fields.explain_json if command.json else words.explain_text
    if command.loaded is not None and (command.where is None or not crawls.all_here()):
        at.stdout.write(shown(asking.dry(command.url, command.loaded.settings, at.clock.now())))
        return Exit.DONE
    assert command.where is not None
    place = _find(command.where)
    if place.engine is Engine.COMPOSE:
        return await compose.ask(place, "explain", *(["--json"] if command.json else []), command.url)
    at.stdout.write(shown(await asking.asked(command.url, place, at)))
    return Exit.DONE


async def _export(place: Place, target: Target, at: Outside, *, force: bool) -> Exit:
    from services.controller.export.copying import export  # of no use to a crawl

    if not force:
        target.refuse_taken()
    return await (compose.export(place, target) if place.engine is Engine.COMPOSE else export(place, target, at))


async def _up(start: cli.Start | None, at: Outside) -> Exit:
    from services.controller import up  # for stacks of containers alone

    if (failed := up.failed_just_now(at.environ, at.clock.now())) is not None:
        up.note_end(at.environ, failed)
        return failed
    if start is None:
        await up.wait_for_a_signal(lambda: print(up.HOW_TO_SEED, end="", file=at.stdout, flush=True))
        return Exit.DONE
    left = await up.unfinished_place(checked(start.loaded.settings).start.seeds, at)
    ended = await _start(start, at) if left is None else await _resume(left, cli.Resume(cli.Where(), {}), at)
    up.note_end(at.environ, ended)
    return ended


async def _start(command: cli.Start, at: Outside) -> Exit:
    settings = checked(command.loaded.settings)
    engine = settings.storage.engine
    at.maker(engine).check(settings)
    if command.dry_run:
        from services.controller.dry_run import dry_run  # of no use to a crawl

        at.stdout.write(dry_run(command.loaded, settings.start.seeds))
        return Exit.DONE
    await _sweep(at)
    named = at.environ.get("CRAWL", "").strip()  # by whoever runs this one for another
    id = crawls.named_id(named) if named else crawls.new_id(at.clock.now(), host_of(settings.start.seeds[0]), at.token())
    with crawls.begin(id, settings.storage.state, settings.start.seeds, engine) as place:
        if engine is Engine.COMPOSE:
            return await compose.crawl(place, settings)
        return await run(place, settings, at, resume=False)


async def _resume(place: Place, command: cli.Resume, at: Outside) -> Exit:
    with crawls.hold(place.folder):
        if place.engine is Engine.COMPOSE:
            return await compose.resume(place, command.flags)
        record = await begun(place, at)
        if record is None and place.engine is not Engine.EMBEDDED:
            raise SettingsError(f"crawl {place.id} is not on these servers: its time is over, or they are others; start it again")
        if record is None:
            crawls.remove(place)  # or its folder could not be used again
            raise SettingsError(f"crawl {place.id} had not begun when it was killed; start it again")
        if record.kept_until < at.clock.now():
            raise SettingsError(f"crawl {place.id} was kept until {moment(record.kept_until)}; start it again (--ttl keeps longer)")
        settings = checked(_with_seeds(kept.from_text(record.rules.settings, command.flags).settings, place))
        settings = with_rank_api_key(settings, at.environ)
        if place.engine is Engine.EXTERNAL:
            settings = with_servers(settings, at.environ)
        at.maker(place.engine).check(settings)
        if record.outcome is CrawlOutcome.COMPLETE:
            # Run all the same: the last one may have been killed before its outputs were merged.
            at.stdout.write(f"Crawl {place.id} is complete already; nothing is left to fetch.\n")
        return await run(place, settings, at, resume=True)


def _with_seeds(settings: Settings, place: Place) -> Settings:
    return replace(settings, start=replace(settings.start, seeds=place.seeds))


async def _sweep(at: Outside) -> None:
    """Removes the crawls here whose time is over. Those in folders of `--state` are their owners' business."""
    for place in crawls.all_here():
        if place.engine is Engine.COMPOSE:
            continue  # what is known of it is in its stack, and hardly anything here
        try:
            with crawls.hold(place.folder):
                record = await begun(place, at)
                if _is_over(place, record, at):
                    crawls.remove(place)
        except SettingsError:
            pass  # it runs, or its servers are not named here
        except Exception as error:  # whatever is wrong with an old crawl must not keep a new one from beginning
            if isinstance(error, EngineUnavailable) and place.engine is not Engine.EMBEDDED:
                continue  # its server is away, and nothing much is kept here
            at.stderr.write(f"{place.folder} can't be read, and was left as it is: {safe(str(error))}\n")


def _is_over(place: Place, record: CrawlRecord | None, at: Outside) -> bool:
    if record is not None:
        return record.kept_until < at.clock.now()
    # A crawl on servers that this one does not know may yet be known to another: its folder is not taken away in a hurry.
    return place.engine is Engine.EMBEDDED or crawls.untouched_s(place, at.clock.now()) > UNKNOWN_KEPT_S


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
        environ=os.environ,
        clock=SystemClock(),
        token=lambda: secrets.token_hex(2),
        maker=_maker,
        open_ledger=_ledger,
        open_blobs=_blobs,
        open_broker=_broker,
    )


def _maker(engine: Engine) -> Maker:
    if engine is Engine.COMPOSE:
        return compose.Compose()
    if engine is Engine.EMBEDDED:
        from services.controller.engines import embedded

        return embedded
    from services.controller.engines.external import External

    return External(os.environ)


def _ledger(place: Place, clock: Clock) -> Ledger:
    if place.engine is Engine.EMBEDDED:
        return wiring.open_file(place.folder, clock)
    return wiring.open_redis(_servers(), place.id)


def _blobs(place: Place, storage: Storage, clock: Clock) -> Blobs:
    if place.engine is Engine.EMBEDDED:
        return wiring.open_directory(place.folder, place.id, clock)
    return wiring.open_s3(_servers(), place.id, storage, clock)


def _broker(place: Place) -> Broker | None:
    return None if place.engine is Engine.EMBEDDED else wiring.open_rabbitmq(_servers(), place.id)


def _servers() -> wiring.Servers:
    return wiring.servers(named_in(os.environ), os.environ)
