-- know_robots.lua: an origin's robots.txt as it was just had, for all workers.
--
-- KEYS[1]  record   gossamer:{<crawl>}:crawl; the other keys of the crawl begin as it does
-- ARGV[1]  now      seconds since 1970, for tests; empty: the server's own time
-- ARGV[2]  origin
-- ARGV[3]  robots   the adapter's own bytes
-- ARGV[4]  for_s    how long they hold
-- Uses     desk, shelf
-- Returns  nothing
-- In Lua because its age is counted by the ledger's own time; and some that are too old make room.
local record, now, origin, robots, for_s = KEYS[1], ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4])
local FORGOTTEN_AT_ONCE = 8
Desk.open(record, now)
local known, by_age, known_until = Desk.shelf("robots"), Desk.key("robots_until"), Desk.now + for_s
local old = redis.call("ZRANGE", by_age, "-inf", string.format("%.17g", Desk.now), "BYSCORE", "LIMIT", 0, FORGOTTEN_AT_ONCE)
for _, one in ipairs(old) do Shelf.put(known, one, false) end
Shelf.put(known, origin, struct.pack(">d", known_until) .. robots)
Desk.write_back()
if #old > 0 then redis.call("ZREM", by_age, unpack(old)) end
Desk.write("ZADD", by_age, { string.format("%.17g", known_until), origin }, 2)
