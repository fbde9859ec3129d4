-- renew.lua: prolongs a lease that is not over.
--
-- KEYS[1]  record   gossamer:{<crawl>}:crawl; the other keys of the crawl begin as it does
-- ARGV[1]  now      seconds since 1970, for tests; empty: the server's own time
-- ARGV[2]  worker
-- ARGV[3]  epoch    the seat that the caller has
-- Uses     desk, telling
-- Returns  the crawl's record
-- In Lua because the epoch must still be the newest at the very step that moves the lease.
local record, now, worker, epoch = KEYS[1], ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
Desk.open(record, now)
local seated = Desk.change_worker(Desk.seated(worker, epoch))
seated.lease_until = Desk.now + Desk.rules.lease_s
Desk.let_through() -- a server without memory must not make every worker look dead
Desk.write_back()
return Telling.crawl()
