-- held.lua: what this worker holds by the ledger's word, FETCHING included, the best first.
--
-- KEYS[1]  record   gossamer:{<crawl>}:crawl; the other keys of the crawl begin as it does
-- ARGV[1]  now      seconds since 1970, for tests; empty: the server's own time
-- ARGV[2]  worker
-- ARGV[3]  epoch    the seat that the caller has
-- Uses     desk, indexes, telling
-- Returns  id, row of each
-- In Lua because the rows must be those of the moment at which the worker held them.
local record, now, worker, epoch = KEYS[1], ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
Desk.open(record, now)
Desk.seated(worker, epoch)
return Telling.urls(Indexes.held_by(Desk, worker))
