-- reap.lua: what workers held whose lease is over becomes WAITING.
--
-- KEYS[1]  record   gossamer:{<crawl>}:crawl; the other keys of the crawl begin as it does
-- ARGV[1]  now      seconds since 1970, for tests; empty: the server's own time
-- Uses     desk, leases
-- Returns  the ids of what they held
-- In Lua because a worker that renews its lease at the last moment keeps everything or nothing.
local record, now = KEYS[1], ARGV[1]
Desk.open(record, now)
return Leases.reap()
