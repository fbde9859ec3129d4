"""Calls that come together are one round trip: in order, each with its own answer or error, and nobody is left waiting."""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import suppress
from hashlib import sha1
from typing import Any

import hiredis
import pytest
from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from adapters.distributed.ledger import RedisLedger
from adapters.distributed.ledger_calls import GROUP
from adapters.distributed.ledger_scripts import script
from gossamer.errors import Fenced, LedgerUnavailable, SettingsError
from gossamer.ids import CrawlId

VERBS = {script(verb).sha.encode(): verb for verb in ("shed", "lease")}
#: For one round trip.
LIMIT_S = 0.3
#: Turns of the loop in which something would come, were it sent.
TURNS = 20


class Server:
    """Speaks as Redis does, to one ledger. It answers when it is told to, and not before."""

    def __init__(self) -> None:
        self.known = set(VERBS)  #: scripts
        self.asked: list[str] = []  #: whatever came, on any connection
        self.refuses: dict[str, str] = {}
        self._answers: list[bytes] = []  # of this connection, not yet given
        self._writer: asyncio.StreamWriter | None = None

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writer, self._answers = writer, []
        commands = hiredis.Reader()
        with suppress(ConnectionError):
            while data := await reader.read(65536):
                commands.feed(data)
                while (command := commands.gets()) is not False:
                    self._hear(writer, command)
        writer.close()

    def _hear(self, writer: asyncio.StreamWriter, command: list[bytes]) -> None:
        match command:
            case [b"EVALSHA", sha, _, _, _, first, *_]:
                call = f"{VERBS[sha]} {first.decode()}"
                answer = f":{int(first)}" if sha in self.known else "-NOSCRIPT No matching script."
            case [b"SCRIPT", b"LOAD", text]:
                sha = sha1(text, usedforsecurity=False).hexdigest().encode()
                call, answer = f"LOAD {VERBS[sha]}", f"+{sha.decode()}"
                self.known.add(sha)
            case _:  # a client that introduces itself
                writer.write(b"+OK\r\n")
                return
        self.asked.append(call)
        said = self.refuses.get(call, answer)
        self._answers.append(f"{said}\r\n".encode())

    async def heard(self, *calls: str) -> None:
        """Returns when it was asked this, by now, and nothing else."""
        async with asyncio.timeout(5):
            while len(self.asked) < len(calls):  # noqa: ASYNC110  # a list has no events
                await asyncio.sleep(0)
        for _ in range(TURNS):
            await asyncio.sleep(0)
        assert self.asked == list(calls)

    def answer(self) -> None:
        """Whatever was asked."""
        assert self._writer is not None
        self._writer.writelines(self._answers)
        self._answers = []

    async def hang_up(self) -> None:
        assert self._writer is not None
        self._writer.close()
        for _ in range(TURNS):
            await asyncio.sleep(0)


@pytest.fixture
async def server(unused_tcp_port: int) -> AsyncIterator[Server]:
    made = Server()
    async with await asyncio.start_server(made.serve, "127.0.0.1", unused_tcp_port):
        yield made


@pytest.fixture
async def ledger(server: Server, unused_tcp_port: int) -> AsyncIterator[RedisLedger]:
    client = Redis(host="127.0.0.1", port=unused_tcp_port, socket_timeout=LIMIT_S, protocol=2, retry=Retry(NoBackoff(), 0))
    opened = RedisLedger(client, CrawlId("ours"))
    yield opened
    await opened.close()
    await client.aclose()


def at_once(*calls: Coroutine[Any, Any, Any]) -> list["asyncio.Task[Any]"]:
    return [asyncio.create_task(call) for call in calls]


async def outcomes(tasks: list["asyncio.Task[Any]"]) -> list[Any]:
    async with asyncio.timeout(5):
        return await asyncio.gather(*tasks, return_exceptions=True)


async def test_calls_of_one_turn_are_one_round_trip_in_their_order(server: Server, ledger: RedisLedger) -> None:
    calls = at_once(ledger.shed(3, 1), ledger.lease("name", "1", 1.0), ledger.shed(2, 1))

    await server.heard("shed 3", "lease 1", "shed 2")  # and none was answered yet
    server.answer()

    assert await outcomes(calls) == [3, True, 2]


async def test_calls_that_come_meanwhile_wait_for_the_answer_and_go_together(server: Server, ledger: RedisLedger) -> None:
    calls = at_once(ledger.shed(1, 1))
    await server.heard("shed 1")
    calls += at_once(ledger.shed(2, 1))
    await server.heard("shed 1")
    calls += at_once(ledger.shed(3, 1))
    await server.heard("shed 1")

    server.answer()
    await server.heard("shed 1", "shed 2", "shed 3")
    server.answer()

    assert await outcomes(calls) == [1, 2, 3]


async def test_a_group_has_an_end(server: Server, ledger: RedisLedger) -> None:
    calls = at_once(*(ledger.shed(number, 1) for number in range(GROUP + 1)))
    names = [f"shed {number}" for number in range(GROUP + 1)]

    await server.heard(*names[:GROUP])
    server.answer()
    await server.heard(*names)
    server.answer()

    assert await outcomes(calls) == list(range(GROUP + 1))


async def test_an_error_is_its_own_callers_and_nobody_elses(server: Server, ledger: RedisLedger) -> None:
    server.refuses = {"shed 2": "-FENCED the lease is over", "shed 3": "-OOM command not allowed"}
    calls = at_once(*(ledger.shed(number, 1) for number in (1, 2, 3, 4)), ledger.lease("\udce4", "1", 1.0))

    await server.heard("shed 1", "shed 2", "shed 3", "shed 4")  # the text that can't be sent took nobody with it
    server.answer()

    first, fenced, full, last, unwritable = await outcomes(calls)
    assert (first, last) == (1, 4)
    assert isinstance(fenced, Fenced)
    assert isinstance(full, LedgerUnavailable)
    assert full.full
    assert isinstance(unwritable, UnicodeEncodeError)


async def test_scripts_that_a_server_does_not_know_are_loaded_and_only_their_calls_repeated(
    server: Server, ledger: RedisLedger
) -> None:
    server.known = {sha for sha, verb in VERBS.items() if verb != "shed"}
    calls = at_once(ledger.shed(1, 1), ledger.lease("name", "1", 1.0), ledger.shed(2, 1))

    await server.heard("shed 1", "lease 1", "shed 2")
    server.answer()
    await server.heard("shed 1", "lease 1", "shed 2", "LOAD shed", "shed 1", "shed 2")
    server.answer()

    assert await outcomes(calls) == [1, True, 2]


async def test_who_may_not_load_scripts_is_told_that_and_not_that_there_is_none(server: Server, ledger: RedisLedger) -> None:
    server.known = set()
    server.refuses = {"LOAD shed": "-NOPERM this user has no permissions to run the 'script|load' command"}
    calls = at_once(ledger.shed(1, 1))

    await server.heard("shed 1")
    server.answer()
    await server.heard("shed 1", "LOAD shed", "shed 1")
    server.answer()

    (refusal,) = await outcomes(calls)
    assert isinstance(refusal, SettingsError)


async def test_a_connection_that_breaks_is_an_outage_for_all_of_its_group_and_the_next_has_another(
    server: Server, ledger: RedisLedger
) -> None:
    calls = at_once(*(ledger.shed(number, 1) for number in (1, 2, 3)))
    await server.heard("shed 1", "shed 2", "shed 3")

    await server.hang_up()

    assert {type(each) for each in await outcomes(calls)} == {LedgerUnavailable}
    calls = at_once(ledger.shed(4, 1))
    await server.heard("shed 1", "shed 2", "shed 3", "shed 4")
    server.answer()
    assert await outcomes(calls) == [4]


async def test_a_connection_that_ended_between_two_calls_is_no_outage(server: Server, ledger: RedisLedger) -> None:
    calls = at_once(ledger.shed(1, 1))
    await server.heard("shed 1")
    server.answer()
    assert await outcomes(calls) == [1]

    await server.hang_up()
    calls = at_once(ledger.shed(2, 1))
    await server.heard("shed 1", "shed 2")
    server.answer()

    assert await outcomes(calls) == [2]


async def test_a_server_that_says_nothing_is_an_outage_for_all_and_its_late_answer_is_nobodys(
    server: Server, ledger: RedisLedger
) -> None:
    calls = at_once(ledger.shed(1, 1), ledger.shed(2, 1))
    assert {type(each) for each in await outcomes(calls)} == {LedgerUnavailable}

    calls = at_once(ledger.shed(3, 1))
    await server.heard("shed 1", "shed 2", "shed 3")
    server.answer()

    assert await outcomes(calls) == [3]


async def test_a_caller_that_is_cancelled_ends_at_once_and_the_others_get_their_own_answers(
    server: Server, ledger: RedisLedger
) -> None:
    first, second, third = at_once(ledger.shed(1, 1), ledger.shed(2, 1), ledger.shed(3, 1))
    await server.heard("shed 1", "shed 2", "shed 3")

    second.cancel()
    await asyncio.wait((second,), timeout=LIMIT_S / 2)
    assert second.cancelled()
    server.answer()

    assert await outcomes([first, third]) == [1, 3]


async def test_who_waits_when_the_ledger_is_closed_is_told_so(server: Server, ledger: RedisLedger) -> None:
    calls = at_once(ledger.shed(1, 1))
    await server.heard("shed 1")
    calls += at_once(ledger.shed(2, 1))
    await asyncio.sleep(0)

    async with asyncio.timeout(LIMIT_S / 2):  # a silent server is not waited for
        await ledger.close()

    assert {type(each) for each in await outcomes(calls)} == {LedgerUnavailable}
    assert server.asked == ["shed 1"]


async def test_who_cleans_up_while_all_tasks_are_cancelled_is_still_served(server: Server, ledger: RedisLedger) -> None:
    """What ends a loop does that: to those who call, and to whoever sends for them."""

    async def work() -> int:
        try:
            return await ledger.shed(1, 1)
        finally:
            cleaned.append(await ledger.shed(2, 1))

    cleaned: list[int] = []
    (working,) = at_once(work())
    await server.heard("shed 1")
    for task in asyncio.all_tasks() - {asyncio.current_task()}:
        if task is working or task.get_name() == "ledger calls":
            task.cancel()

    await server.heard("shed 1", "shed 2")
    server.answer()

    await asyncio.wait((working,))
    assert working.cancelled()
    assert cleaned == [2]
