"""The walk of one URL through a worker: the order of the steps, in one screen.

Whichever step ends the URL says how, and it leaves the worker's hand in one of four ways: closed, passed up, put off, or put back.
The first half is the network's, and holds one of the worker's slots; the second is ours, and its domain goes on meanwhile.
"""

import msgspec
from msgspec.structs import replace

from gossamer.answers import Dropped, Twin, Wait
from gossamer.messages import Url
from gossamer.outcomes import Flag, Outcome
from gossamer.ports.blobs import BlobRef
from gossamer.records import Closing, Facts, Visit
from services.worker.download import Answer
from services.worker.fetch import Failed, Fetching, LetGo, Redirected
from services.worker.gate import Gate
from services.worker.hand import Hand
from services.worker.judge import Judge
from services.worker.links import Followable, Links
from services.worker.permission import Denied, Permission
from services.worker.read import Reading
from services.worker.showing import Showing
from services.worker.store import Store


class Steps(msgspec.Struct, frozen=True):
    """The steps as one worker takes them."""

    hand: Hand
    permission: Permission
    gate: Gate
    fetch: Fetching
    judge: Judge
    store: Store
    show: Showing
    links: Links
    follows_duplicates: bool  #: the links of a page whose like is stored are followed all the same


class Arrived(msgspec.Struct, frozen=True):
    """A page that was read, and is to be judged."""

    url: Url
    answer: Answer
    page: Reading
    visit: Visit  #: what is left to settle of its request


async def approach(url: Url, at: Steps) -> Arrived | None:
    """From the worker's queue to a page that is read; None if that was the end of it."""
    permission = await at.permission.ask(url)  # 7: robots.txt of the origin
    if isinstance(permission, Denied):
        await at.hand.pass_up(url, permission.outcome, permission.reason)
        return None
    answer = await at.gate.begin(url) if permission is None else permission  # 8
    if isinstance(answer, Wait):
        at.hand.put_back(url, answer.seconds)
        return None
    if isinstance(answer, Dropped):
        await at.hand.let_lie(url, answer)
        return None
    await at.links.widen(answer.scope_hosts)
    fate = await at.fetch(url, answer)  # 9, 10, 11
    match fate:
        case LetGo():
            return None
        case Failed(outcome=outcome, reason=reason, facts=facts, visit=visit):
            await at.hand.close(url, Closing(id=url.id, outcome=outcome, reason=reason, facts=facts, visit=visit))
            return None
        case Redirected():
            await at.hand.close(url, fate.closing(url))
            return None
    visit = await at.hand.request_is_over(url, fate.visit)
    return Arrived(url, fate.answer, fate.page, visit)


async def settle(arrived: Arrived, at: Steps) -> None:
    """From a page that was read to its closing, with its links."""
    url, answer, page = arrived.url, arrived.answer, arrived.page
    facts = Facts(status=answer.status, flags=page.flags, title=page.parsed.title or None, took_s=answer.took_s)
    closing = Closing(id=url.id, outcome=Outcome.DONE, facts=facts, visit=arrived.visit)
    if Flag.SITEMAP in page.flags:
        await at.hand.close(url, _with_links(closing, await at.links.listed(url, page)))
        return
    blob: BlobRef | None = None
    if Flag.NOINDEX not in page.flags:
        judgement = await at.judge(url.id, page)  # 12
        if isinstance(judgement, Dropped):
            at.hand.drop(url)
            return
        if isinstance(judgement, Twin):
            closing = _duplicate(closing, judgement)
            if at.follows_duplicates:
                closing = _with_links(closing, at.links.followable(url, page))
            await at.hand.close(url, closing)
            return
        blob = await at.store(url, answer)  # 13
    followed = at.links.followable(url, page)  # 15: before the modules, which are shown the links
    failed = await at.show(url, answer, page, followed.found) if blob is not None else ()  # 14
    facts = replace(facts, blob=blob, flags=(*page.flags, *failed))
    await at.hand.close(url, _with_links(replace(closing, facts=facts), followed))  # 16


def _duplicate(closing: Closing, twin: Twin) -> Closing:
    facts = replace(closing.facts, twin=twin.id, similarity=twin.similarity)
    alike = "the same" if twin.similarity == 1 else f"{twin.similarity:.0%} the same"
    return replace(closing, outcome=Outcome.DUPLICATE, reason=f"a page that says {alike} is stored", facts=facts)


def _with_links(closing: Closing, followed: Followable) -> Closing:
    return replace(closing, links=followed.links, refused=followed.refused)
