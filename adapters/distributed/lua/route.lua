-- route.lua: WAITING → ROUTED to the domain's worker, or PARKED. Reaps first.
--
-- KEYS[1]  record   gossamer:{<crawl>}:crawl; the other keys of the crawl begin as it does
-- ARGV[1]  now      seconds since 1970, for tests; empty: the server's own time
-- ARGV[2]  ids      16 bytes each, one after another
-- ARGV[3]  ranks    their priorities, a byte each
-- Uses     desk, hands, leases, routing
-- Returns  a number for each: its worker, or a code of Route
-- In Lua because window, owner and load must be as they were looked at when the URL is given away.
local record, now, ids, ranks = KEYS[1], ARGV[1], ARGV[2], ARGV[3]
Desk.open(record, now)
Leases.reap()
ids = Desk.split_ids(ids)
Desk.fetch(ids)

local function park(url, domain)
    Desk.change(domain).parked = domain.parked + 1
    Desk.move(url, PARKED, nil)
    if domain.out == 0 then Hands.make_due(domain) end
    return Route.PARKED
end

local function route(url, priority)
    if not url or url.state ~= WAITING then return Route.CLOSED end
    if not Desk.running() then return Route.NO_ROOM end
    local domain = Desk.domain(url.domain)
    if Hands.is_over(domain) then
        Hands.close_with_domain(url, domain)
        return Route.CLOSED
    end
    url.priority = priority
    Desk.save(url)
    -- Those who are parked may be better: `promote` chooses.
    if domain.parked > 0 or not Routing.may_take_more(domain) then return park(url, domain) end
    local owner = Routing.owner(domain)
    if not owner then return Route.NO_ROOM end
    Hands.take(url, domain, owner)
    return owner.id
end

local answers = {}
for at, id in ipairs(ids) do answers[at] = route(Desk.url(id), string.byte(ranks, at)) end
if next(Desk.changed_urls) then Desk.write_back() end
return answers
