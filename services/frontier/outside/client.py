"""One request to the rank API. Whatever goes wrong becomes `Failed`, with a reason in our own words.

The API is the operator's choice, so the guard that keeps pages from leading into private networks does not apply; the rest of it is
as untrusted as a page: bounded in time and size, never decompressed, never followed elsewhere.
"""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Final

import httpx

from gossamer import __version__
from services.frontier.outside.answers import Failed, Rubbish, priorities

#: From the first byte sent to the last received.
REQUEST_S: Final = 10.0
#: A hundred domains take some 20 KB.
ANSWER_BYTES_MAX: Final = 256 * 1024
_TRY_AGAIN: Final = frozenset({408, 425, 429, 500, 502, 503, 504})


class RankApi:
    def __init__(self, url: str, key: str | None) -> None:
        """Asks nothing yet."""
        headers = {"Accept-Encoding": "identity", "User-Agent": f"Gossamer/{__version__}"}
        self._client = httpx.AsyncClient(
            headers=headers | ({"API-OPR": key} if key else {}),
            timeout=REQUEST_S,
            follow_redirects=False,
            trust_env=False,  # a proxy or a password that lies about in the environment is not meant for this
            verify=httpx.create_ssl_context(),  # authorities of one's own, by SSL_CERT_FILE, are
        )
        self._url = url
        self.requests = 0  #: sent so far

    async def ask(self, domains: Sequence[str]) -> dict[str, int]:
        """The priorities of those that it knows of. Raises `Failed`."""
        self.requests += 1
        try:
            async with asyncio.timeout(REQUEST_S):
                return await self._ask(domains)
        except TimeoutError as error:
            raise Failed(f"it did not answer within {REQUEST_S:.0f} s", again=True) from error
        except (httpx.HTTPError, OSError) as error:
            raise Failed(f"it can't be reached ({type(error).__name__})", again=True) from error
        except Rubbish as error:
            raise Failed(str(error), again=True) from error

    async def _ask(self, domains: Sequence[str]) -> dict[str, int]:
        async with self._client.stream("GET", self._url, params={"domains[]": list(domains)}) as answer:
            if answer.status_code != httpx.codes.OK:
                again = answer.status_code in _TRY_AGAIN
                wait_s = retry_after_s(answer.headers.get("Retry-After", ""), datetime.now(UTC)) if again else None
                raise Failed(f"it answers with status {answer.status_code}", again=again, retry_after_s=wait_s)
            if answer.headers.get("Content-Encoding", "identity") != "identity":
                raise Rubbish("its answer is compressed, though it was asked not to")
            return priorities(await _body(answer), domains)

    async def close(self) -> None:
        await self._client.aclose()


async def _body(answer: httpx.Response) -> bytes:
    body = bytearray()
    async for chunk in answer.aiter_raw():
        body += chunk
        if len(body) > ANSWER_BYTES_MAX:
            raise Rubbish(f"its answer has more than {ANSWER_BYTES_MAX // 1024} KiB")
    return bytes(body)


def retry_after_s(text: str, now: datetime) -> float | None:
    """Seconds, or a date; None for anything else."""
    if text.isascii() and text.isdecimal() and len(text) < 10:
        return float(text)
    try:
        return max((parsedate_to_datetime(text) - now).total_seconds(), 0.0)
    except (ValueError, TypeError, OverflowError):  # TypeError: a date without a zone
        return None
