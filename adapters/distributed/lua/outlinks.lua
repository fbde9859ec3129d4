-- outlinks.lua: stored pages in the order in which they were closed, with the ids of their links.
--
-- KEYS[1]  record   gossamer:{<crawl>}:crawl; the other keys of the crawl begin as it does
-- ARGV[1]  now      seconds since 1970, for tests; empty: the server's own time
-- ARGV[2]  after    the place after which to begin: 0 is before the first
-- ARGV[3]  most
-- Uses     desk
-- Returns  of each its id and, after it, its links
-- In Lua because every verb is: a crawl whose time is over has no pages, not none.
local record, now, after, most = KEYS[1], ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
Desk.open(record, now)
if most <= 0 then return {} end
return redis.call("LRANGE", Desk.key("outlinks"), after, after + most - 1)
