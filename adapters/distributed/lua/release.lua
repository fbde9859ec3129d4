-- release.lua: gives back all that the worker holds, and ends its lease. As reap, but nobody died.
--
-- KEYS[1]  record   gossamer:{<crawl>}:crawl; the other keys of the crawl begin as it does
-- ARGV[1]  now      seconds since 1970, for tests; empty: the server's own time
-- ARGV[2]  worker
-- ARGV[3]  epoch    the seat that the caller has
-- Uses     desk, leases
-- Returns  the ids of what it held
-- In Lua because what it held must be nobody's in the step in which it is no worker any more.
local record, now, worker, epoch = KEYS[1], ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
Desk.open(record, now)
local seated = Desk.change_worker(Desk.seated(worker, epoch))
seated.lease_until = Desk.now
local held = Leases.give_back(seated, false)
Desk.let_through() -- it needs hardly any memory, and those that end must be able to
Desk.write_back()
return held
