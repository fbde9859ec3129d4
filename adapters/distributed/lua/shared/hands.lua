-- hands.lua: into a worker's hands and out of them, the two moves that every other verb is made of.
--
-- Uses     desk, content, budgets
--
-- A URL is taken in hand in one way and let go in one way, whichever verb does it, so that load, window, reservation, the busy
-- mark, the content entry and *due* can't drift apart.
local Hands = {}

-- A visit as the adapter packs it.
local RECEIVED, SINCE_START, DELAY, FAILED, ANSWERED = 1, 2, 3, 4, 5

function Hands.holds(url)
    return url.state == ROUTED or url.state == FETCHING
end

-- WAITING or PARKED → ROUTED(worker).
function Hands.take(url, domain, worker)
    Desk.change(domain)
    if url.state == PARKED then domain.parked = domain.parked - 1 end
    domain.out = domain.out + 1
    domain.owner, domain.owner_until = worker.id, Desk.now + Desk.rules.owner_s
    Desk.change_worker(worker).load = worker.load + 1
    Desk.move(url, ROUTED, worker.id)
end

-- ROUTED or FETCHING → `to`. Without a visit nobody saw the end of the request that may be in flight.
function Hands.let_go(url, to, visit, stored)
    assert(Hands.holds(url))
    local domain, worker = Desk.change(Desk.domain(url.domain)), Desk.change_worker(Desk.worker(url.worker))
    domain.out = domain.out - 1
    worker.load = worker.load - 1
    if url.state == FETCHING then
        worker.fetching = worker.fetching - 1
        if url.suspect ~= 0 then Hands.leave_alone(worker, -1) end
        if stored then Content.keep(url) else Content.withdraw(url) end
    end
    if domain.busy == url.id then
        Hands.end_request(url, domain, visit)
    elseif visit then
        Hands.judge_health(domain, visit)
        if visit[DELAY] then -- its request was written off, and only now tells how long the domain is to be left alone
            domain.next_at = math.max(domain.next_at, Desk.now - visit[SINCE_START] + domain.delay_s)
        end
    end
    Desk.move(url, to, nil)
    if to == PARKED then domain.parked = domain.parked + 1 end
    Hands.make_due(domain)
end

-- Closes a URL from whatever open state it is in, without a request.
function Hands.close_open(url, outcome, reason)
    if Hands.holds(url) then
        Hands.let_go(url, CLOSED)
    else
        if url.state == PARKED then
            local domain = Desk.change(Desk.domain(url.domain))
            domain.parked = domain.parked - 1
        end
        Desk.move(url, CLOSED, nil)
    end
    Desk.close(url, outcome, reason)
end

-- Whether the domain is asked no more: it was given up, or a page budget of it is used up.
function Hands.is_over(domain)
    return domain.closed ~= nil or Budgets.spent(domain) ~= nil
end

-- The domain is asked no more: its URLs end as it did, each as it is met.
function Hands.close_with_domain(url, domain)
    if domain.closed then
        Hands.close_open(url, domain.closed, "its domain was given up after failing again and again")
        return
    end
    local reason = Budgets.spent(domain)
    Hands.close_open(url, BUDGET, reason)
    Desk.count("budgets", reason, 1)
end

-- Enters a domain with PARKED URLs in *due*: when it may be asked again, or now.
function Hands.make_due(domain)
    if domain.parked > 0 then
        Desk.change(domain).due_at = Hands.is_over(domain) and Desk.now or math.max(Desk.now, domain.not_before)
    end
end

-- The gate said go: the domain is busy with this URL, its next start a delay away, and bytes are reserved.
function Hands.start_request(url, domain)
    assert(not domain.busy)
    local books = Desk.books
    books.reserved_bytes = books.reserved_bytes + Desk.rules.request_bytes
    books.requests = books.requests + 1
    Hands.count_knock(url, 1)
    Desk.change(domain).busy = url.id
    domain.next_at = Desk.now + domain.delay_s
end

-- The domain is idle again. A request whose end nobody saw is charged whole, and counts as started just now.
function Hands.end_request(url, domain, visit)
    local books, reserved = Desk.books, Desk.rules.request_bytes
    Hands.count_knock(url, -1)
    Desk.change(domain).busy = nil
    books.reserved_bytes = books.reserved_bytes - reserved
    if visit then
        books.used_bytes = books.used_bytes + visit[RECEIVED]
        Hands.judge_health(domain, visit)
        -- From the request's start and not from the gate's *go*: a slow dial would bring two starts together.
        domain.next_at = math.max(domain.next_at, Desk.now - visit[SINCE_START] + domain.delay_s)
    else
        books.charged_bytes = books.charged_bytes + reserved
        domain.next_at = math.max(domain.next_at, Desk.now + domain.delay_s)
    end
end

-- A request for a URL that is only ROUTED is one for its robots.txt.
function Hands.count_knock(url, by)
    if url.state == ROUTED then
        local worker = Desk.change_worker(Desk.worker(url.worker))
        worker.knocking = worker.knocking + by
    end
end

-- Suspects that are being fetched: of the worker, and of all, so that the gate need not look at each worker for none.
function Hands.leave_alone(worker, by)
    Desk.change_worker(worker).alone = worker.alone + by
    Desk.books.alone = Desk.books.alone + by
end

-- What a visit says of the domain: its delay as it now is, how it is doing.
function Hands.judge_health(domain, visit)
    Desk.change(domain)
    if visit[DELAY] then domain.delay_s = visit[DELAY] end
    if visit[FAILED] then
        Hands.count_failure(domain, visit[FAILED])
    elseif visit[ANSWERED] then
        domain.failures, domain.rests = 0, 0
    end
end

-- The domain is not to be asked for so long; never sooner than was said before. If it is due, it is due then.
function Hands.hold_off(domain, seconds)
    Desk.change(domain).not_before = math.max(domain.not_before, Desk.now + seconds)
    if domain.due_at and not Hands.is_over(domain) then domain.due_at = math.max(domain.due_at, domain.not_before) end
end

-- Enough of them in a row, and the domain rests; after its last rest it is given up, for good.
function Hands.count_failure(domain, outcome)
    if domain.closed then return end
    local rules = Desk.rules
    Desk.change(domain).failures = domain.failures + 1
    -- Well enough, or resting already: a late retry is no reason to rest once more.
    if domain.failures < rules.domain_failures or Desk.now < domain.not_before then return end
    if domain.rests >= rules.domain_rests then
        domain.closed = outcome
    else
        Hands.hold_off(domain, rules.domain_rest_s * 2 ^ domain.rests)
        domain.rests = domain.rests + 1
    end
end
