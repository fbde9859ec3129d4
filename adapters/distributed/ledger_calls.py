"""Calls to the ledger's server: those that come at about the same time are one round trip, in the order in which they came.

A round trip costs its process three times what a verb in it does. So whoever calls while the server is busy with a group goes into
the next one, and nobody waits for a timer: a lone caller is served at once, and groups grow with the load. There is one connection
and one group under way, so no call overtakes one that was made before it; the server does one thing at a time anyway.

Callers wait for an answer of ours and not for redis-py, which answers a call whose task was cancelled meanwhile as if nothing had
been (8.1 does, about every third time). So a cancelled caller ends at once and harms nobody, though what it asked for may be done.
Must not know: what a verb does, nor what its errors mean.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from hiredis import pack_command
from redis import exceptions as errors
from redis.asyncio import Redis
from redis.asyncio.connection import AbstractConnection

from adapters.distributed.ledger_scripts import Script

#: Calls of one group: a bound on how long the first of them waits for the last.
GROUP: Final = 64
#: For a group that is cut short at the end: its connection is closed without a goodbye.
CLOSE_S: Final = 1.0


@dataclass(frozen=True, slots=True, eq=False)
class _Call:
    script: Script
    packed: bytes
    answer: "asyncio.Future[Any]"


class Calls:
    """Runs scripts on one server. The client's `socket_timeout` is the limit of a round trip."""

    def __init__(self, client: Redis) -> None:
        self._pool = client.connection_pool
        self._limit_s: float | None = self._pool.connection_kwargs.get("socket_timeout")
        self._connection: AbstractConnection | None = None
        self._waiting: list[_Call] = []
        self._sender: asyncio.Task[None] | None = None

    async def __call__(self, script: Script, key: str, *arguments: bytes | str | float) -> Any:
        """What the script returns. Raises its own error as redis-py names it; or that of the connection, with all of its group."""
        loop = asyncio.get_running_loop()
        packed = _packed("EVALSHA", script.sha, 1, key, *arguments)  # here: a text that can't be is its caller's affair alone
        call = _Call(script, packed, loop.create_future())
        self._waiting.append(call)
        if self._sender is None:
            self._start()
        return await call.answer

    async def close(self) -> None:
        """Whoever still waits is told that it was closed. Nobody may call any more."""
        left, self._waiting = self._waiting, []
        _answer(left, [_closed()] * len(left))
        if self._sender is not None:
            self._sender.cancel()
            await asyncio.wait((self._sender,), timeout=CLOSE_S)
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.disconnect(nowait=True)
            connection.socket_timeout = self._limit_s
            await self._pool.release(connection)

    def _start(self) -> None:
        """Its first step is taken after all who call in this turn of the loop."""
        self._sender = asyncio.get_running_loop().create_task(self._send(), name="ledger calls")

    async def _send(self) -> None:
        """Until nobody waits. What fails is the answer of those whom it concerns, so this task never does."""
        group: Sequence[_Call] = ()
        try:
            while self._waiting:
                group, self._waiting = self._waiting[:GROUP], self._waiting[GROUP:]
                try:
                    answers = await self._ask(group)
                except Exception as error:
                    answers = [error] * len(group)
                _answer(group, answers)
        finally:
            self._sender = None
            _answer(group, [_closed()] * len(group))  # those that have no answer yet: this was cut short
            if self._waiting:  # what ends a loop cancels its tasks, and those who clean up still call
                self._start()

    async def _ask(self, group: Sequence[_Call]) -> list[Any]:
        """For each its answer, or what to raise. Raises what concerns all."""
        answers = await self._round_trip([call.packed for call in group])
        unknown = [place for place, answer in enumerate(answers) if isinstance(answer, errors.NoScriptError)]
        if unknown:  # a server that was started anew knows no scripts; this once, their calls run after the others of the group
            scripts = list(dict.fromkeys(group[place].script for place in unknown))
            loads = [_packed("SCRIPT", "LOAD", script.text) for script in scripts]
            again = await self._round_trip(loads + [group[place].packed for place in unknown])
            loaded = dict(zip(scripts, again, strict=False))
            for place, answer in zip(unknown, again[len(scripts) :], strict=True):
                told = loaded[group[place].script]
                answers[place] = told if isinstance(told, Exception) else answer
        return answers

    async def _round_trip(self, commands: Sequence[bytes]) -> list[Any]:
        """Cut short by whatever, it leaves no answer for the next one: redis-py has closed the connection."""
        try:
            async with asyncio.timeout(self._limit_s):
                connection = await self._connected()
                await connection.send_packed_command(commands, check_health=False)
                return [await _read(connection) for _ in commands]
        except TimeoutError as error:
            raise errors.TimeoutError(f"no answer within {self._limit_s} s") from error

    async def _connected(self) -> AbstractConnection:
        """The connection; another one if the server has ended it."""
        if self._connection is None:
            self._connection = await self._pool.get_connection()  # type: ignore[no-untyped-call]
            # redis-py would make a task for each question and a timer for each answer: the round trip has one limit for all.
            self._connection.socket_timeout = None
        else:
            await self._pool.ensure_connection(self._connection)
        return self._connection


def _closed() -> Exception:
    return errors.ConnectionError("the connection was closed")


def _packed(*words: bytes | str | float) -> bytes:
    packed: bytes = pack_command(words)  # type: ignore[arg-type]  # its stub takes no more than one word
    return packed


async def _read(connection: AbstractConnection) -> Any:
    """The next answer, or the error that the server gave instead of one. Raises when there is no answer to be had."""
    try:
        return await connection.read_response()
    except errors.ResponseError as refusal:
        return refusal


def _answer(group: Sequence[_Call], answers: Sequence[Any]) -> None:
    for call, answer in zip(group, answers, strict=True):
        if call.answer.done():  # whoever asked has gone
            continue
        if isinstance(answer, Exception):
            call.answer.set_exception(answer)
        else:
            call.answer.set_result(answer)
