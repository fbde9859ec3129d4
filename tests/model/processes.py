"""Controller, frontiers, workers, the broker between them, time and faults: every step that can be taken from a state.

Each step is one verb, one publishing or one event outside, so that a process can be killed between any two.
Must not know: how a verb decides (`verbs`), nor what must hold (`invariants`), but for what only the server sees: when a request
begins, it is looked at who else is asking.
"""

from collections.abc import Iterable, Iterator

from tests.model.state import (
    COMPLETE,
    DEFER,
    DRAINING,
    ENDED,
    FAILED,
    NONE,
    OK,
    PARKED,
    RETRY,
    RUNNING,
    SHED,
    STORED,
    TWIN,
    Domain,
    Frontier,
    Ledger,
    Queues,
    State,
    Step,
    Task,
    Url,
    Worker,
    World,
)
from tests.model.verbs import (
    Answer,
    add,
    begin,
    best,
    choices,
    defer,
    end,
    finish,
    held,
    judge,
    knock,
    know_robots,
    leave,
    outdated,
    pass_up,
    promote,
    put,
    reap,
    register,
    release,
    resume,
    roomy,
    route,
    set_domain,
    shed,
    waiting,
)

ON_THE_WIRE = frozenset({"open", "open again", "robots open"})
TO_BE_DIALLED = frozenset({"go", "go again", "robots"})
OF_A_REQUEST = ON_THE_WIRE | TO_BE_DIALLED


def start(world: World) -> State:
    s = world.scenario
    ledger = Ledger(
        status=RUNNING,
        urls=(Url(),) * len(s.pages),
        domains=tuple(Domain(robots=domain not in s.robots) for domain in range(s.domains)),
        leases=(False,) * s.workers,
        content=(NONE,) * s.contents,
    )
    queues = Queues((), (), ((),) * s.workers)
    state = State(ledger, queues, (Worker(),) * s.workers, (Frontier(),) * s.frontiers, "add", world.faults)
    if s.cold:
        return state
    there = s.workers - s.late
    workers = (Worker(),) * s.late + tuple(Worker(number, newest=True) for number in range(there))
    ledger, _ = add(world, ledger._replace(leases=(True,) * there + (False,) * s.late), s.seeds)
    queues = queues._replace(urls=publish(world, (), *s.seeds))
    return state._replace(ledger=ledger, queues=queues, workers=workers, controller="watch")


def steps(world: World, state: State) -> Iterator[Step]:
    yield from controller_steps(world, state)
    for at in range(len(state.frontiers)):
        if state.frontiers[at] not in state.frontiers[:at]:
            yield from frontier_steps(world, state, at)
    for at in range(len(state.workers)):
        if state.workers[at] not in state.workers[:at]:
            yield from worker_steps(world, state, at)
    yield from time_steps(world, state)
    yield from fault_steps(world, state)


# --- The broker: hints may be refused ---------------------------------------------------------------------------------


def publish(world: World, queue: tuple[int, ...], *urls: int) -> tuple[int, ...]:
    for url in urls:
        if len(queue) < world.scenario.size:
            queue = tuple(sorted((*queue, url)))
    return queue


def redeliver(queue: tuple[int, ...], url: int) -> tuple[int, ...]:
    return tuple(sorted((*queue, url)))


def without(queue: tuple[int, ...], url: int) -> tuple[int, ...]:
    at = queue.index(url)
    return queue[:at] + queue[at + 1 :]


def to_worker(world: World, queues: Queues, worker: int, url: int) -> Queues:
    return queues._replace(worker=put(queues.worker, worker, publish(world, queues.worker[worker], url)))


def with_queue(queues: Queues, name: str, queue: tuple[int, ...]) -> Queues:
    if name.startswith("worker."):
        return queues._replace(worker=put(queues.worker, int(name[7:]), queue))
    return queues._replace(urls=queue) if name == "urls" else queues._replace(band=queue)


# --- What the processes have in common --------------------------------------------------------------------------------


def fenced(ledger: Ledger, worker: Worker) -> bool:
    return not (worker.newest and ledger.leases[worker.id])


def with_worker(state: State, at: int, worker: Worker) -> State:
    return state._replace(workers=tuple(sorted(put(state.workers, at, worker))))


def with_frontier(state: State, at: int, frontier: Frontier) -> State:
    return state._replace(frontiers=tuple(sorted(put(state.frontiers, at, frontier))))


def answered(world: World, state: State, label: str, after: State, breach: str = "") -> Iterator[Step]:
    """A verb was called: its answer arrives, or is lost and the caller stands where it stood."""
    yield Step(label, after, breach=breach)
    if state.faults and "answer" in world.scenario.kinds and after.ledger != state.ledger:
        lost = state._replace(ledger=after.ledger, faults=state.faults - 1)
        yield Step(f"{label}, ANSWER LOST", lost, fault=True, breach=breach)


def on_the_way(world: World, state: State, queue: tuple[int, ...]) -> set[int]:
    """URLs whose hint is in the asker's queue or in a frontier's hand: to ask for these would only double the hint."""
    return set() if world.scenario.loose else {*queue, *(frontier.url for frontier in state.frontiers)}


def in_flight(world: World, state: State, domain: int) -> int:
    """Requests of workers that aren't fenced or can't know it; those of others are cut, or are row 15 of the windows."""
    pages = world.scenario.pages
    return sum(
        1
        for worker in state.workers
        if worker.tasks and (worker.trusting or not fenced(state.ledger, worker))
        for task in worker.tasks
        if task.phase in ON_THE_WIRE and pages[task.url].domain == domain
    )


def names(urls: Iterable[int]) -> str:
    return "[" + " ".join(f"u{url}" for url in urls) + "]"


# --- The worker -------------------------------------------------------------------------------------------------------


def worker_steps(world: World, state: State, at: int) -> Iterator[Step]:
    worker, ledger = state.workers[at], state.ledger
    if worker.id == NONE:
        yield from register_steps(world, state, at)
        return
    name = f"w{worker.id}"
    if fenced(ledger, worker):
        name += " (zombie)"
        yield from fenced_steps(world, state, at, name)
    else:
        for task in worker.tasks:
            yield from task_steps(world, state, at, task, name)
        if world.scenario.release:
            gone = with_worker(state._replace(ledger=release(world, ledger, worker.id)), at, Worker())
            yield from answered(world, state, f"{name} release", gone)
    yield from hint_steps(world, state, at, name)


def register_steps(world: World, state: State, at: int) -> Iterator[Step]:
    worker = state.workers[at]
    after, seat = register(world, state.ledger, worker.former)
    if seat == NONE:
        return
    older = tuple(
        other._replace(newest=other.newest and other.id != seat, former=outdated(world, other.former, seat))
        for other in state.workers
    )
    seated = state._replace(ledger=after, workers=older)
    yield Step(f"w{seat} registers", with_worker(seated, at, Worker(seat, newest=True)))
    if state.faults and "answer" in world.scenario.kinds:
        lost = with_worker(seated, at, older[at])._replace(faults=state.faults - 1)
        yield Step(f"w{seat} registers, ANSWER LOST", lost, fault=True)


def fenced_steps(world: World, state: State, at: int, name: str) -> Iterator[Step]:
    """What is left to one whose lease is over: to notice it. A request that it has no reason to cut goes on till then."""
    worker, ledger = state.workers[at], state.ledger
    former = NONE
    if world.scenario.poison:
        former = worker.id if worker.newest else worker.id + world.scenario.workers
    yield Step(f"{name} is fenced and drops all", with_worker(state, at, Worker(former=former)))
    for task in worker.tasks:
        if task.phase == "robots read" or (worker.trusting and task.phase in OF_A_REQUEST):
            yield from task_steps(world, state, at, task, name)
        elif world.bug == "no-fence":
            for step in task_steps(world, state, at, task, name):
                changed = step.after.ledger != ledger
                yield step._replace(breach="I6 a fenced worker changed the ledger") if changed else step
        elif world.bug == "dial-past-lease" and task.phase in TO_BE_DIALLED:
            yield Step(f"{name} dials for u{task.url}", state, breach="I3 a request began after the lease was over")


def hint_steps(world: World, state: State, at: int, name: str) -> Iterator[Step]:
    """Links are published, hints are taken, and what the ledger says is ours is asked for."""
    worker, ledger, queues = state.workers[at], state.ledger, state.queues
    if worker.news:
        if world.bug == "links-after-closing":
            ledger, _ = add(world, ledger, worker.news)
        sent = state._replace(ledger=ledger, queues=queues._replace(urls=publish(world, queues.urls, *worker.news)))
        yield Step(f"{name} publishes {names(worker.news)}", with_worker(sent, at, worker._replace(news=())))
    hand = {task.url for task in worker.tasks}
    for url in sorted(set(queues.worker[worker.id])):
        fewer = queues._replace(worker=put(queues.worker, worker.id, without(queues.worker[worker.id], url)))
        tasks = worker.tasks
        if url not in hand or world.bug == "hand-is-a-list":
            tasks = tuple(sorted((*tasks, Task(url, "new"))))
        taken = with_worker(state._replace(queues=fewer), at, worker._replace(tasks=tasks))
        yield Step(f"{name} takes hint u{url}", taken)
    if not fenced(ledger, worker) and world.bug != "worker-never-asks":
        there = hand | on_the_way(world, state, queues.worker[worker.id])
        missing = [Task(url, "new") for url in held(ledger, worker.id) if url not in there]
        if missing:
            tasks = tuple(sorted((*worker.tasks, *missing)))
            asked = with_worker(state, at, worker._replace(tasks=tasks))
            yield Step(f"{name} asks and takes up {names(task.url for task in missing)}", asked)


def task_steps(world: World, state: State, at: int, task: Task, name: str) -> Iterator[Step]:
    """The walk of one URL through its worker, one verb or one event outside at a time."""
    worker, ledger, url, scenario = state.workers[at], state.ledger, task.url, world.scenario
    page = scenario.pages[url]

    def goes(ledger: Ledger, phase: str, content: int = task.content, news: tuple[int, ...] = ()) -> State:
        rest = list(worker.tasks)
        rest.remove(task)
        if phase:
            rest.append(Task(url, phase, content))
        moved = worker._replace(tasks=tuple(sorted(rest)), news=tuple(sorted({*worker.news, *news})))
        return with_worker(state._replace(ledger=ledger), at, moved)

    def calls(label: str, ledger: Ledger, phase: str, news: tuple[int, ...] = ()) -> Iterator[Step]:
        yield from answered(world, state, f"{name} {label}", goes(ledger, phase, news=news))

    def asks_gate(verb: str, answer: Answer, phase: str, refused: str = "") -> Iterator[Step]:
        after, said = answer
        if said != "wait":
            then = {"go": phase, "budget": refused}.get(said, "")
            yield from calls(f"{verb}(u{url}): {said}", after, then)

    def dials(phase: str) -> Step:
        domain = ledger.domains[page.domain]
        breach = ""
        if domain.held:
            breach = "I3 a request began before not_before"
        elif not domain.rested:
            breach = "I3 two requests began less than the delay apart"
        elif in_flight(world, state, page.domain):
            breach = "I3 two requests in flight"
        elif domain.closed and task.phase == "go":  # a retry is the rest of a URL that began before
            breach = "I3 a request began at a domain that was given up"
        counted = world.budget(ledger).bytes is not None
        after = set_domain(ledger, page.domain, domain._replace(rested=False))
        after = after._replace(asked=after.asked + counted)
        return Step(f"{name} dials for u{url}", goes(after, phase), breach=breach)

    def kills(what: str) -> Step:
        return Step(f"{what} kills {name}", with_worker(state, at, Worker()))

    match task.phase:
        case "new" if not ledger.domains[page.domain].robots:
            yield from asks_gate("knock", knock(world, ledger, worker.id, url), "robots")
        case "new" if page.forbidden:
            yield from calls(f"pass_up(u{url})", pass_up(world, ledger, worker.id, url), "")
        case "new":
            yield from asks_gate("begin", begin(world, ledger, worker.id, url), "go")
        case "robots":
            yield dials("robots open")
        case "robots open" if scenario.deadly_robots:
            yield kills("robots.txt")
        case "robots open":
            yield Step(f"{name} has robots.txt", goes(ledger, "robots read"))
            yield Step("robots.txt can't be had yet", goes(ledger, "robots later"))
        case "robots read":
            yield from calls(f"know_robots(domain {page.domain})", know_robots(world, ledger, url), "robots known")
        case "robots known":
            yield from calls(f"leave(u{url})", leave(world, ledger, url), "new")
        case "robots later":
            yield from calls(f"leave(u{url}, until)", leave(world, ledger, url, later=True), "new")
        case "go":
            yield dials("open")
        case "go again":
            yield dials("open again")
        case "open" | "open again" if page.deadly:
            yield kills(f"u{url}")
        case "open" | "open again" if page.stunning:
            over = ledger._replace(leases=put(ledger.leases, worker.id, False))
            yield Step(f"u{url} freezes {name} past its lease", state._replace(ledger=over))
        case "open" | "open again":
            for answer in page.answers:
                if answer == OK:
                    for content in page.contents or (NONE,):
                        yield Step(f"u{url} answers {OK} {content}", goes(ledger, "body", content))
                elif answer != RETRY or task.phase == "open":
                    enough = answer == DEFER and 0 < scenario.deferrals <= ledger.urls[url].deferrals
                    yield Step(f"u{url} answers {answer}", goes(ledger, "fail" if enough else answer))
        case "retry":
            yield from calls(f"leave(u{url})", leave(world, ledger, url), "left")
        case "left":
            if ledger.domains[page.domain].held:
                yield Step(f"{name} would rather defer u{url} than wait", goes(ledger, "give back"))
            yield from asks_gate("knock", knock(world, ledger, worker.id, url), "go again", refused="give back")
        case "body":
            after, said = judge(world, ledger, url, task.content)
            if said != "wait":
                yield from calls(f"judge(u{url}): {said}", after, said)
        case "enter":
            after = ledger._replace(content=put(ledger.content, task.content, url))
            yield Step(f"{name} enters u{url}'s content", goes(after, "fresh"))
        case "fresh" | "twin" | "fail":
            outcome = {"fresh": STORED, "twin": TWIN, "fail": FAILED}[task.phase]
            after, new = finish(world, ledger, worker.id, url, outcome, task.content)
            yield from calls(f"finish(u{url}, {outcome}) +{names(new)}", after, "", news=new)
        case "defer" | "give back":
            later = task.phase == "defer"
            yield from calls(f"defer(u{url})", defer(world, ledger, worker.id, url, later=later), "")


# --- The frontier -----------------------------------------------------------------------------------------------------


def frontier_steps(world: World, state: State, at: int) -> Iterator[Step]:
    frontier, ledger, queues = state.frontiers[at], state.ledger, state.queues
    match frontier.phase:
        case "rank":
            published = state._replace(queues=queues._replace(band=publish(world, queues.band, frontier.url)))
            ranked = with_frontier(published, at, frontier._replace(phase="ranked"))
            yield Step(f"frontier publishes u{frontier.url} to the band", ranked)
        case "route":
            for prefer in choices(world, ledger):
                after, said = route(world, ledger, frontier.url, prefer)
                worker = int(said[-1]) if said.startswith("to") else NONE
                moved = frontier._replace(phase="send" if worker != NONE else "sent", worker=worker)
                label = f"frontier route(u{frontier.url}): {said}"
                yield from answered(world, state, label, with_frontier(state._replace(ledger=after), at, moved))
        case "send":
            sent = state._replace(queues=to_worker(world, queues, frontier.worker, frontier.url))
            moved = frontier._replace(phase="sent", worker=NONE)
            yield Step(f"frontier publishes u{frontier.url} to w{frontier.worker}", with_frontier(sent, at, moved))
        case "promoted":
            sent = state._replace(queues=to_worker(world, queues, frontier.worker, frontier.url))
            yield Step(f"frontier publishes u{frontier.url} to w{frontier.worker}", with_frontier(sent, at, Frontier()))
        case "ranked" | "sent":
            yield Step(f"frontier acknowledges u{frontier.url}", with_frontier(state, at, Frontier()))
        case "idle":
            yield from take_steps(world, state, at)
            yield from keeper_steps(world, state, at)


def take_steps(world: World, state: State, at: int) -> Iterator[Step]:
    queues, bands = state.queues, world.scenario.bands
    if bands:
        for url in sorted(set(queues.urls)):
            taken = state._replace(queues=queues._replace(urls=without(queues.urls, url)))
            yield Step(f"frontier takes u{url} from urls", with_frontier(taken, at, Frontier("rank", url)))
    if roomy(world, state.ledger):
        source = queues.band if bands else queues.urls
        for url in sorted(set(source)):
            fewer = without(source, url)
            taken = state._replace(queues=queues._replace(band=fewer) if bands else queues._replace(urls=fewer))
            yield Step(f"frontier takes u{url} to route", with_frontier(taken, at, Frontier("route", url)))


def keeper_steps(world: World, state: State, at: int) -> Iterator[Step]:
    ledger, queues, scenario = state.ledger, state.queues, world.scenario
    for domain, entry in enumerate(ledger.domains):
        if entry.due:
            yield from promote_steps(world, state, at, domain)
    asks = world.bug not in ("frontier-never-asks", "ack-first-without-asking")
    if asks and (scenario.loose or not (queues.urls or queues.band)):
        sent = on_the_way(world, state, ())
        for url in best(world, [url for url in waiting(ledger) if url not in sent]):
            asked = state._replace(queues=queues._replace(urls=publish(world, queues.urls, url)))
            if asked != state:
                yield Step(f"frontier asks: u{url} is waiting", asked)
    reaped = reap(world, ledger)
    if reaped != ledger:
        yield Step("frontier reap", state._replace(ledger=reaped))
    if sum(url.state == SHED for url in ledger.urls) < scenario.sheds:
        for n in range(len(ledger.urls)):
            after = shed(world, ledger, n)
            if after != ledger:
                yield Step(f"frontier shed: u{n}", state._replace(ledger=after))


def promote_steps(world: World, state: State, at: int, domain: int) -> Iterator[Step]:
    ledger, pages = state.ledger, world.scenario.pages
    there = [n for n, url in enumerate(ledger.urls) if url.state == PARKED and pages[n].domain == domain]
    for prefer in choices(world, ledger):
        for nth in range(max(1, len(best(world, there)))):
            after, url = promote(world, ledger, domain, prefer, nth)
            if url != NONE:
                worker = after.urls[url].worker
                moved = with_frontier(state._replace(ledger=after), at, Frontier("promoted", url, worker))
                early = "I3 a URL was routed before not_before" if ledger.domains[domain].held else ""
                yield from answered(world, state, f"frontier promote: u{url} to w{worker}", moved, early)
            elif after != ledger:
                closed = [n for n in there if after.urls[n].state == FAILED]
                label = f"closes {names(closed)}" if closed else f"nothing of domain {domain}"
                yield Step(f"frontier promote: {label}", state._replace(ledger=after))


# --- The controller ---------------------------------------------------------------------------------------------------


def controller_steps(world: World, state: State) -> Iterator[Step]:
    ledger, queues, scenario = state.ledger, state.queues, world.scenario
    if state.controller == "add":
        after, new = add(world, ledger, scenario.seeds)
        added = state._replace(ledger=after, controller="publish" if new else "watch")
        yield from answered(world, state, f"controller add({names(scenario.seeds)})", added)
        return
    if state.controller == "publish":
        sent = queues._replace(urls=publish(world, queues.urls, *scenario.seeds))
        yield Step(f"controller publishes {names(scenario.seeds)}", state._replace(queues=sent, controller="watch"))
        return
    if scenario.stop and ledger.status == RUNNING:
        yield Step("controller stop", state._replace(ledger=ledger._replace(status=DRAINING)))
    after = end(world, ledger)
    if world.bug == "complete-when-queues-are-empty":
        hands = [*(worker.tasks for worker in state.workers), *(f.phase != "idle" for f in state.frontiers)]
        if not any((queues.urls, queues.band, *queues.worker, *hands)):
            after = ledger._replace(status=COMPLETE)
    if after != ledger:
        yield Step(f"controller end: {after.status}", state._replace(ledger=after))
    if ledger.resumed + 1 < len(scenario.budgets) and (ledger.status == ENDED or scenario.impatient):
        yield from resume_steps(world, state)


def resume_steps(world: World, state: State) -> Iterator[Step]:
    """A worker that lives, although the operator says that none does, learns of it by its next verb."""
    ledger, kept = state.ledger, world.bug == "resume-keeps-leases"
    workers = tuple(
        worker._replace(trusting=worker.trusting or (not kept and not fenced(ledger, worker))) if worker.id != NONE else worker
        for worker in state.workers
    )
    resumed = state._replace(ledger=resume(world, ledger), workers=tuple(sorted(workers)))
    yield Step(f"controller resume ({ledger.status})", resumed)


# --- Time, and faults -------------------------------------------------------------------------------------------------


def time_steps(world: World, state: State) -> Iterator[Step]:
    ledger, pages = state.ledger, world.scenario.pages
    # A delay that nobody waits for may as well pass later: the order of that event and any other step makes no difference.
    tasks = [task for worker in state.workers for task in worker.tasks]
    asked = {pages[task.url].domain for task in tasks if task.phase in ("new", "left") or task.phase in TO_BE_DIALLED}
    asked -= overshadowed(world, state)
    for at, domain in enumerate(ledger.domains):
        if at in asked and not (domain.cool and domain.rested):
            ticked = set_domain(ledger, at, domain._replace(cool=True, rested=True))
            yield Step(f"domain {at}: the delay has passed", state._replace(ledger=ticked))
        if domain.held:
            passed = set_domain(ledger, at, domain._replace(held=False))
            yield Step(f"domain {at}: not_before has passed", state._replace(ledger=passed))
    for number, live in enumerate(ledger.leases):
        if live and not any(worker.id == number and worker.newest for worker in state.workers):
            over = ledger._replace(leases=put(ledger.leases, number, False))
            yield Step(f"w{number}'s lease is over", state._replace(ledger=over))


def overshadowed(world: World, state: State) -> set[int]:
    """Domains whose request may go on after a `resume`: their next_at is the voided lease's own end and the delay."""
    if world.bug == "resume-voids-at-once":
        return set()
    return {
        world.scenario.pages[task.url].domain
        for worker in state.workers
        if worker.trusting
        for task in worker.tasks
        if task.phase in OF_A_REQUEST
    }


def fault_steps(world: World, state: State) -> Iterator[Step]:
    """The faults that come from outside; lost answers are with their verbs."""
    if not state.faults:
        return
    spent, kinds = state._replace(faults=state.faults - 1), world.scenario.kinds
    ledger = state.ledger
    for at, worker in enumerate(state.workers):
        if worker.id != NONE and "kill" in kinds:
            yield Step(f"KILL w{worker.id}", with_worker(spent, at, Worker()), fault=True)
        if worker.id != NONE and "freeze" in kinds and not fenced(ledger, worker):
            over = ledger._replace(leases=put(ledger.leases, worker.id, False))
            yield Step(f"FREEZE w{worker.id} past its lease", spent._replace(ledger=over), fault=True)
    if "kill" in kinds:
        for at, frontier in enumerate(state.frontiers):
            if frontier.phase != "idle":
                yield frontier_killed(world, spent, at)
        if state.controller == "publish":
            yield Step("KILL controller", spent._replace(controller="add"), fault=True)
    if "hint" in kinds:
        yield from broker_faults(spent)


def frontier_killed(world: World, spent: State, at: int) -> Step:
    """What it had not acknowledged is delivered again."""
    frontier, queues = spent.frontiers[at], spent.queues
    back = with_frontier(spent, at, Frontier())
    if frontier.phase != "promoted" and world.bug != "ack-first-without-asking":
        if world.scenario.bands and frontier.phase not in ("rank", "ranked"):
            back = back._replace(queues=queues._replace(band=redeliver(queues.band, frontier.url)))
        else:
            back = back._replace(queues=queues._replace(urls=redeliver(queues.urls, frontier.url)))
    return Step(f"KILL frontier ({frontier.phase} u{frontier.url})", back, fault=True)


def broker_faults(spent: State) -> Iterator[Step]:
    queues = spent.queues
    full = [("urls", queues.urls), ("band", queues.band), *((f"worker.{w}", q) for w, q in enumerate(queues.worker))]
    for name, queue in full:
        for url in sorted(set(queue)):
            for verb, changed in (("LOSE", without(queue, url)), ("DOUBLE", redeliver(queue, url))):
                after = spent._replace(queues=with_queue(queues, name, changed))
                yield Step(f"{verb} hint u{url} in {name}", after, fault=True)
    if sum(len(queue) for _, queue in full) > 1:
        yield Step("WIPE the broker", spent._replace(queues=Queues((), (), ((),) * len(queues.worker))), fault=True)
