"""Is this server fit to hold a ledger? Asked once, before a crawl begins.

A server that evicts would drop URLs without a word, so it is refused. One that keeps nothing on its disk is the operator's choice,
and gets a warning. Managed servers forbid some of the questions: what can't be learned is a warning as well, never a guess by
version numbers, which Valkey shares with an old Redis.
"""

from typing import Any, Final

from redis import exceptions as errors
from redis.asyncio import Redis

from gossamer.errors import LedgerUnavailable, SettingsError

KEEPS_ALL: Final = "noeviction"


async def examine(client: Redis) -> list[str]:
    """Warnings, a line each. Raises `SettingsError` for a server that can't hold a ledger, `LedgerUnavailable` for none."""
    try:
        await client.ping()
    except (errors.AuthenticationError, errors.AuthorizationError) as error:
        raise LedgerUnavailable(f"Redis does not let us in: {error}") from error
    except errors.ConnectionError as error:
        raise LedgerUnavailable(f"Redis can't be used now: {error}") from error
    except errors.ResponseError as error:
        raise SettingsError(f"redis_url: the server refuses it: {error}") from error
    except (errors.RedisError, OSError) as error:
        raise LedgerUnavailable(f"Redis can't be used now: {error}") from error
    try:
        memory, persistence = await _section(client, "memory"), await _section(client, "persistence")
        policy = memory.get("maxmemory_policy") or await _configured(client, "maxmemory-policy")
        appends = persistence.get("aof_enabled", await _configured(client, "appendonly"))
    except (errors.RedisError, OSError) as error:
        raise LedgerUnavailable(f"Redis can't be used now: {error}") from error
    if policy not in (None, KEEPS_ALL):
        raise SettingsError(
            f"redis_url: the server evicts keys when it is full (maxmemory-policy {policy}); it must be {KEEPS_ALL}"
        )
    used = _number(memory, "used_memory") - _number(memory, "mem_not_counted_for_evict")
    if 0 < _number(memory, "maxmemory") < used:
        raise LedgerUnavailable("Redis is out of memory: more is used than maxmemory allows", full=True)
    return [*_about_eviction(policy), *_about_appending(appends)]


def _about_eviction(policy: str | None) -> list[str]:
    if policy is not None:
        return []
    return [f"Redis does not tell its maxmemory-policy; with any other than {KEEPS_ALL} URLs would be lost without a word"]


def _about_appending(appends: Any) -> list[str]:
    if appends in (1, "1", "yes"):
        return []
    if appends is None:
        return ["Redis does not tell whether it appends to a file; if not, a crawl ends with its server"]
    return ["Redis has appendonly off: if it crashes, the crawl goes back to the last snapshot, or is lost"]


def _number(section: dict[str, Any], name: str) -> int:
    value = section.get(name)
    return value if isinstance(value, int) else 0


async def _section(client: Redis, name: str) -> dict[str, Any]:
    """What INFO says; nothing where it is forbidden."""
    try:
        said: dict[str, Any] = await client.info(name)
    except errors.ResponseError:
        return {}
    return said


async def _configured(client: Redis, name: str) -> str | None:
    try:
        return (await client.config_get(name)).get(name)
    except errors.ResponseError:
        return None
