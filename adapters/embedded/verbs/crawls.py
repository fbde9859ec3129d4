"""The crawl's own record: made, taken up again, stopped, kept alive."""

from adapters.embedded.verbs.desk import Crawl, Desk
from adapters.embedded.verbs.leases import void_all
from gossamer.errors import NoCrawl
from gossamer.outcomes import CrawlOutcome
from gossamer.records import CrawlStatus, Rules


def create(desk: Desk, rules: Rules) -> None:
    try:
        _ = desk.crawl
    except NoCrawl:
        status, kept_until = CrawlStatus.RUNNING, desk.now + rules.ttl_s
        desk.create(Crawl(status=status, rules=rules, created_at=desk.now, kept_until=kept_until))


def resume(desk: Desk, rules: Rules, *, nobody_lives: bool) -> None:
    void_all(desk, nobody_lives=nobody_lives)  # by the old rules: what is in flight was reserved by them
    if desk.crawl.outcome is not CrawlOutcome.COMPLETE:
        desk.books.status, desk.books.outcome = CrawlStatus.RUNNING, None
        desk.books.rules = rules
        keep(desk)


def stop(desk: Desk, outcome: CrawlOutcome) -> None:
    if desk.crawl.running:
        desk.books.status, desk.books.outcome = CrawlStatus.DRAINING, outcome


def keep(desk: Desk) -> None:
    if desk.crawl.status is not CrawlStatus.ENDED:  # its time runs from its last step on, whoever still looks after it
        desk.books.kept_until = desk.now + desk.crawl.rules.ttl_s
