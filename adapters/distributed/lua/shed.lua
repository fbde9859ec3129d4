-- shed.lua: closes the worst WAITING or PARKED URLs while more are open than the crawl may hold.
--
-- KEYS[1]  record   gossamer:{<crawl>}:crawl; the other keys of the crawl begin as it does
-- ARGV[1]  now      seconds since 1970, for tests; empty: the server's own time
-- ARGV[2]  open_max
-- ARGV[3]  most     that are closed by this call
-- Uses     desk, hands
-- Returns  how many were closed
-- In Lua because two that shed at once must not shed twice as many.
local record, now, open_max, most = KEYS[1], ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
Desk.open(record, now)
most = math.max(0, math.min(most, Desk.open_urls() - open_max))

-- The worst of both, the worst first: each is sorted by one number, (priority, n).
local function worst_of(name)
    return redis.call("ZRANGE", Desk.key(name), 0, most - 1, "REV", "WITHSCORES")
end

local worst = {}
if most > 0 then
    local waiting, parked, w, p = worst_of("waiting"), worst_of("parked"), 1, 1
    while #worst < most and (waiting[w] or parked[p]) do
        if not parked[p] or (waiting[w] and tonumber(waiting[w + 1]) > tonumber(parked[p + 1])) then
            worst[#worst + 1], w = waiting[w], w + 2
        else
            worst[#worst + 1], p = parked[p], p + 2
        end
    end
end

Desk.fetch(worst)
for _, id in ipairs(worst) do
    local url = Desk.url(id)
    Hands.close_open(url, SHED, "more open URLs than the crawl may hold; its priority was " .. url.priority)
end
if #worst > 0 then
    Desk.let_through() -- it frees more than it takes
    Desk.write_back()
end
return #worst
