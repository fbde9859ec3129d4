-- leases.lua: who lives, and what becomes of the URLs of those who don't.
--
-- Uses     desk, hands, indexes
local Leases = { POISONED_KEPT = 1000 }

-- Costs a look at each worker while all live: it is the first step of `route`, `promote` and `register`. Written back at once,
-- so that what follows finds the indexes as they are.
function Leases.reap()
    local reaped, died = {}, false
    for _, worker in pairs(Desk.workers()) do
        if worker.load > 0 and worker.lease_until <= Desk.now then
            died = true
            for _, id in ipairs(Leases.give_back(worker, true)) do reaped[#reaped + 1] = id end
        end
    end
    if died then Desk.write_back() end
    return reaped
end

-- All that a worker holds becomes WAITING. `blame`: it died, and what it was fetching is a suspect.
function Leases.give_back(worker, blame)
    local held = Indexes.held_by(Desk, worker.id)
    Desk.fetch(held)
    for _, id in ipairs(held) do
        local url = Desk.url(id)
        if blame and url.state == FETCHING then
            Leases.give_back_suspect(url, worker.epoch)
        else
            local domain = Desk.domain(url.domain)
            local died_of_robots = blame and domain.busy == id
            Hands.let_go(url, WAITING)
            if died_of_robots then -- no URL is to blame for what robots.txt does: the domain is
                Hands.count_failure(domain, ROBOTS_DENIED)
                Hands.make_due(domain)
            end
        end
    end
    assert(worker.load == 0 and worker.fetching == 0 and worker.knocking == 0 and worker.alone == 0)
    return held
end

function Leases.give_back_suspect(url, epoch)
    local poison_deaths = Desk.rules.poison_deaths
    if poison_deaths == 0 then
        Hands.let_go(url, WAITING)
        return
    end
    local deaths = url.deaths + (url.suspect ~= 0 and 1 or 0) -- a suspect is begun alone, so it has died alone
    if deaths >= poison_deaths then
        Hands.close_open(url, POISON, "its worker died with it " .. deaths + 1 .. " times, the last " .. deaths .. " alone")
        Desk.append("LPUSH", "poisoned", url.id, Leases.POISONED_KEPT)
    else
        Hands.let_go(url, WAITING)
        url.suspect = epoch
    end
    url.deaths = deaths
end

-- The operator says that nobody lives: every lease is over, and no page is to blame. Where that is not certain, a domain whose
-- request was in flight is left alone until its worker's lease would have been over: a worker that does live knows nothing of
-- this, and its request goes on until then.
function Leases.void_all(nobody_lives)
    for _, worker in pairs(Desk.workers()) do
        local held_until, in_flight = worker.lease_until, {}
        for _, id in ipairs(Indexes.held_by(Desk, worker.id)) do
            local domain = Desk.domain(Desk.url(id).domain)
            if domain.busy == id then in_flight[#in_flight + 1] = domain end
        end
        Desk.change_worker(worker).lease_until = math.min(held_until, Desk.now)
        Leases.give_back(worker, false)
        for _, domain in ipairs(nobody_lives and {} or in_flight) do
            Desk.change(domain).next_at = math.max(domain.next_at, held_until + domain.delay_s)
        end
    end
end

-- The worker of that epoch lives: its lapse was no death, so what it held is no suspect for it. Once for each URL: a page that
-- hangs its worker every time would else be pardoned for ever.
function Leases.exonerate(epoch)
    local suspects = redis.call("ZRANGE", Desk.key("suspects"), epoch, epoch, "BYSCORE")
    Desk.fetch(suspects)
    for _, id in ipairs(suspects) do
        local url = Desk.url(id)
        if url.pardoned == 0 and url.state ~= FETCHING then -- one that is begun alone by another is cleared by that visit
            url.suspect, url.deaths, url.pardoned = 0, math.max(url.deaths - 1, 0), 1
            Desk.save(url)
        end
    end
end
