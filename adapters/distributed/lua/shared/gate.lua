-- gate.lua: may this worker ask this domain now?
--
-- Uses     desk, hands
--
-- Politeness and budgets are decided here and nowhere else. Never waits: it says how long, and the caller waits. An answer is a
-- code of `Gate` (adapters/distributed/ledger_scripts.py) and, for those that wait, seconds.
local Gating = { ASK_AGAIN_S = 0.1 } -- when what is waited for has no time of its own: another request's end

-- The URL and its domain, if this worker holds it.
function Gating.in_hand(worker, id)
    local url = Desk.url(id)
    if url and url.worker == worker.id then return url, Desk.domain(url.domain) end
end

-- A request of this URL that was begun and never ended: the *go* was lost, or its end was. It is charged, and over.
function Gating.write_off(url, domain)
    if domain.busy == url.id then Hands.end_request(url, domain) end
end

-- Whether a ROUTED URL has to leave the worker's hand instead; then it has left the ledger's as well.
function Gating.may_not_start(url, domain)
    Gating.write_off(url, domain)
    if not Desk.running() then return Gate.BUDGET_SPENT end
    if Hands.is_over(domain) then
        Hands.close_with_domain(url, domain)
        return Gate.CLOSED
    end
    if Desk.now < domain.not_before then
        Hands.let_go(url, PARKED)
        return Gate.CLOSED
    end
end

-- A request that is not the URL's first.
function Gating.knock(url, domain, worker)
    Gating.write_off(url, domain)
    local code, seconds = Gating.closed_gate(domain)
    if not code and url.state == ROUTED then code, seconds = Gating.company(url, worker) end
    if not code then code, seconds = Gating.out_of_bytes() end
    if code then return code, seconds end
    Hands.start_request(url, domain)
    return Gate.GO
end

-- I3: one request in flight, starts a delay apart, none before not_before.
function Gating.closed_gate(domain)
    local now = Desk.now
    if domain.busy then return Gate.BUSY, math.max(domain.next_at - now, Gating.ASK_AGAIN_S) end
    if now < domain.not_before then return Gate.NOT_BEFORE, domain.not_before - now end
    if now < domain.next_at then return Gate.DELAY, domain.next_at - now end
end

-- A suspect is fetched alone in its process, so that if it dies again nobody else is to blame, nor blamed. Nobody else: no other
-- page, and no robots.txt either.
function Gating.company(url, worker)
    if url.suspect == 0 and Desk.books.alone == 0 then return nil end
    for _, other in pairs(Desk.workers()) do
        if other.process == worker.process then
            local busy = other.fetching > 0 or other.knocking > 0
            if other.alone > 0 or (url.suspect ~= 0 and busy) then return Gate.ALONE, Gating.ASK_AGAIN_S end
        end
    end
end

-- I4: stored + reserved never passes max_pages. While something is reserved it may yet fail, and free its share.
function Gating.out_of_pages()
    if Desk.books.stored + Desk.fetching() < Desk.rules.max_pages then return nil end
    if Desk.fetching() > 0 then return Gate.BUDGET, Gating.ASK_AGAIN_S end
    return Gating.drain(PAGE_BUDGET)
end

-- I4: used + charged + reserved never passes max_bytes.
function Gating.out_of_bytes()
    local books, rules = Desk.books, Desk.rules
    local committed = books.used_bytes + books.charged_bytes + books.reserved_bytes
    if committed + rules.request_bytes <= rules.max_bytes then return nil end
    if books.reserved_bytes > 0 then return Gate.BUDGET, Gating.ASK_AGAIN_S end
    return Gating.drain(BYTE_BUDGET)
end

function Gating.drain(outcome)
    if Desk.running() then Desk.books.status, Desk.books.outcome = DRAINING, outcome end
    return Gate.BUDGET_SPENT
end

-- What the worker is told: codes and seconds, the bytes that it may receive, and how many hosts the scope has.
function Gating.told(answers)
    return { table.concat(answers), Desk.rules.request_bytes, Desk.books.scope_hosts }
end

function Gating.answer(code, seconds)
    return struct.pack(">Bd", code, seconds or 0)
end
