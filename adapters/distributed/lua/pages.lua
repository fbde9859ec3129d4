-- pages.lua: stored pages in the order in which they were closed.
--
-- KEYS[1]  record   gossamer:{<crawl>}:crawl; the other keys of the crawl begin as it does
-- ARGV[1]  now      seconds since 1970, for tests; empty: the server's own time
-- ARGV[2]  after    the place after which to begin: 0 is before the first
-- ARGV[3]  most
-- Uses     desk, telling
-- Returns  id, row of each
-- In Lua because the list and the rows must be of one moment.
local record, now, after, most = KEYS[1], ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
Desk.open(record, now)
if most <= 0 then return {} end
return Telling.urls(redis.call("LRANGE", Desk.key("pages"), after, after + most - 1))
