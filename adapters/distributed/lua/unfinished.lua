-- unfinished.lua: open URLs, those that are held first.
--
-- KEYS[1]  record   gossamer:{<crawl>}:crawl; the other keys of the crawl begin as it does
-- ARGV[1]  now      seconds since 1970, for tests; empty: the server's own time
-- ARGV[2]  most
-- Uses     desk, indexes, telling
-- Returns  id, row of each
-- In Lua because they must be of one moment.
local record, now, most = KEYS[1], ARGV[1], tonumber(ARGV[2])
Desk.open(record, now)
local ids = {}
for _, name in ipairs({ "held", "parked", "waiting" }) do
    local left = most - #ids
    if left > 0 then
        for _, id in ipairs(Indexes.ids(redis.call("ZRANGE", Desk.key(name), 0, left - 1))) do ids[#ids + 1] = id end
    end
end
return Telling.urls(ids)
