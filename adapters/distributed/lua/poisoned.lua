-- poisoned.lua: URLs that were closed because their workers died with them, the newest first.
--
-- KEYS[1]  record   gossamer:{<crawl>}:crawl; the other keys of the crawl begin as it does
-- ARGV[1]  now      seconds since 1970, for tests; empty: the server's own time
-- ARGV[2]  most
-- Uses     desk, telling
-- Returns  id, row of each
-- In Lua because the list and the rows must be of one moment.
local record, now, most = KEYS[1], ARGV[1], tonumber(ARGV[2])
Desk.open(record, now)
if most <= 0 then return {} end
return Telling.urls(redis.call("LRANGE", Desk.key("poisoned"), 0, most - 1))
