"""Who lives: workers' leases, and what becomes of the URLs of those who don't."""

from adapters.embedded.verbs.desk import Crawl, Desk, UrlRow, WorkerRow
from adapters.embedded.verbs.hands import close_open, count_failure, let_go, make_due
from gossamer.ids import Epoch, UrlId, WorkerId
from gossamer.outcomes import Outcome
from gossamer.records import Seat
from gossamer.states import State


def register(desk: Desk, process: str, formerly: Seat | None = None) -> Seat:
    reap(desk)
    if formerly is not None:
        _exonerate(desk, formerly)
    id = next(n for n in range(len(desk.workers) + 1) if n not in desk.workers or desk.workers[n].lease_until <= desk.now)
    last = max((worker.epoch for worker in desk.workers.values()), default=0)  # of all: a suspect names its epoch alone
    # By the clock as well as by counting: a ledger that forgot its last second can't hand out an epoch twice.
    epoch = Epoch(max(last + 1, int(desk.now * 1_000_000)))
    lease_until = desk.now + desk.crawl.rules.lease_s
    desk.enroll(WorkerRow(WorkerId(id), epoch, process, lease_until, load=0, fetching=0, knocking=0, alone=0))
    return Seat(WorkerId(id), epoch)


def renew(desk: Desk, seat: Seat) -> Crawl:
    desk.seated(seat)
    desk.worker(seat.worker).lease_until = desk.now + desk.crawl.rules.lease_s
    return desk.crawl


def release(desk: Desk, seat: Seat) -> list[UrlId]:
    desk.seated(seat)
    desk.worker(seat.worker).lease_until = desk.now
    return _give_back(desk, desk.workers[seat.worker], blame=False)


def reap(desk: Desk) -> list[UrlId]:
    """Costs a look at each worker while all live: it is the first step of `route`, `promote` and `register`."""
    dead = [worker for worker in desk.workers.values() if worker.load and worker.lease_until <= desk.now]
    return [id for worker in dead for id in _give_back(desk, worker, blame=True)]


def void_all(desk: Desk, *, nobody_lives: bool) -> None:
    """The operator says that nobody lives: every lease is over, and no page is to blame.

    Where that is not certain, a domain whose request was in flight is left alone until its worker's lease would have been over:
    a worker that does live knows nothing of this, and its request goes on until then.
    """
    for worker in desk.workers.values():
        held_until = worker.lease_until
        desk.worker(worker.id).lease_until = min(held_until, desk.now)
        in_flight = [url.domain for url in _held(desk, worker) if desk.domain(url.domain).busy == url.n]
        _give_back(desk, worker, blame=False)
        for domain in () if nobody_lives else map(desk.domain, in_flight):
            desk.change(domain).next_at = max(domain.next_at, held_until + domain.delay_s)


def _give_back(desk: Desk, worker: WorkerRow, *, blame: bool) -> list[UrlId]:
    held = _held(desk, worker)
    for url in held:
        if blame and url.state is State.FETCHING:
            _give_back_suspect(desk, url, worker.epoch)
            continue
        domain = desk.domain(url.domain)
        died_of_robots = blame and domain.busy == url.n
        let_go(desk, url, State.WAITING)
        if died_of_robots:  # no URL is to blame for what robots.txt does: the domain is
            count_failure(desk, domain, Outcome.ROBOTS_DENIED)
            make_due(desk, domain)
    assert worker.load == worker.fetching == worker.knocking == worker.alone == 0
    return [url.id for url in held]


def _held(desk: Desk, worker: WorkerRow) -> list[UrlRow]:
    return desk.urls_where("state IN (2, 3) AND worker = ?", (worker.id,))


def _give_back_suspect(desk: Desk, url: UrlRow, epoch: Epoch) -> None:
    poison_deaths = desk.crawl.rules.poison_deaths
    if not poison_deaths:
        let_go(desk, url, State.WAITING)
        return
    died_alone = url.suspect != 0  # a suspect is begun alone
    deaths = url.deaths + died_alone
    if deaths >= poison_deaths:
        url.deaths = deaths
        close_open(desk, url, Outcome.POISON, f"its worker died with it {deaths + 1} times, the last {deaths} alone")
        return
    let_go(desk, url, State.WAITING)
    url.suspect, url.deaths = epoch, deaths


def _exonerate(desk: Desk, seat: Seat) -> None:
    """The worker of that seat lives: its lapse was no death, so what it held is no suspect for it.

    Once for each URL: a page that hangs its worker every time would else be pardoned for ever.
    """
    for url in desk.urls_where("suspect = ? AND state <> 4 AND NOT pardoned", (seat.epoch,)):
        if url.state is not State.FETCHING:  # begun alone by another already: it is cleared by that visit
            url.suspect, url.deaths, url.pardoned = 0, max(url.deaths - 1, 0), 1
            desk.save(url)
