-- refused.lua: a bounded sample of links that were never added, the newest last.
--
-- KEYS[1]  record   gossamer:{<crawl>}:crawl; the other keys of the crawl begin as it does
-- ARGV[1]  now      seconds since 1970, for tests; empty: the server's own time
-- Uses     desk
-- Returns  of each the length of its reason in four bytes, the reason, the URL
-- In Lua because every verb is: a crawl whose time is over has no refusals, not none.
local record, now = KEYS[1], ARGV[1]
Desk.open(record, now)
return redis.call("ZRANGE", Desk.key("refusals"), 0, -1)
