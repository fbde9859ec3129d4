-- notes.lua: all that was noted.
--
-- KEYS[1]  record   gossamer:{<crawl>}:crawl; the other keys of the crawl begin as it does
-- ARGV[1]  now      seconds since 1970, for tests; empty: the server's own time
-- Uses     desk
-- Returns  name, text of each
-- In Lua because every verb is: a crawl whose time is over has no notes, not none.
local record, now = KEYS[1], ARGV[1]
Desk.open(record, now)
return redis.call("HGETALL", Desk.key("notes"))
