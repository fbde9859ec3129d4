-- promote.lua: for domains that are due, the best PARKED → ROUTED, while window and worker have room. Reaps first.
--
-- KEYS[1]  record   gossamer:{<crawl>}:crawl; the other keys of the crawl begin as it does
-- ARGV[1]  now      seconds since 1970, for tests; empty: the server's own time
-- ARGV[2]  most     URLs that are moved at most: a verb's work has an end
-- Uses     desk, hands, leases, routing, indexes
-- Returns  worker, id, row of each URL that was routed
-- In Lua because the best of a domain must be routed while it is the best, and by one caller.
local record, now, most = KEYS[1], ARGV[1], tonumber(ARGV[2])
Desk.open(record, now)
Leases.reap()

local routed = {}

local function route(domain, ids)
    for _, id in ipairs(ids) do
        local owner = Routing.may_take_more(domain) and Routing.owner(domain)
        if not owner then break end
        Hands.take(Desk.url(id), domain, owner)
        routed[#routed + 1] = { owner.id, id }
    end
end

local function promote(domain, left)
    Desk.change(domain).due_at = nil
    local over = Hands.is_over(domain)
    local fits = over and left or math.min(left, Routing.window(domain.delay_s) - domain.out)
    local ids = Indexes.best_parked(Desk, domain, fits)
    Desk.fetch(ids)
    if over then
        for _, id in ipairs(ids) do Hands.close_with_domain(Desk.url(id), domain) end
    else
        route(domain, ids)
    end
    if domain.out == 0 or over then -- nobody had room, or it may not be asked yet; else letting go will make it due
        Hands.make_due(domain)
    end
end

if Desk.running() then
    local names = redis.call("ZRANGE", Desk.key("due"), "-inf", string.format("%.17g", Desk.now), "BYSCORE", "LIMIT", 0, most)
    Shelf.fetch(Desk.domain_rows, names)
    local left = most
    for _, name in ipairs(names) do
        if left <= 0 then break end
        local domain = Desk.domain(name)
        local parked = domain.parked
        promote(domain, left)
        left = left - (parked - domain.parked)
    end
    if #names > 0 then Desk.write_back() end
end

local told = {}
for _, one in ipairs(routed) do
    told[#told + 1] = one[1]
    told[#told + 1] = one[2]
    told[#told + 1] = Shelf.get(Desk.url_rows, one[2])
end
return told
