-- workers.lua: those whose lease lives.
--
-- KEYS[1]  record   gossamer:{<crawl>}:crawl; the other keys of the crawl begin as it does
-- ARGV[1]  now      seconds since 1970, for tests; empty: the server's own time
-- Uses     desk
-- Returns  id, row of each
-- In Lua because the ledger's own time says who lives.
local record, now = KEYS[1], ARGV[1]
Desk.open(record, now)
local told = {}
for id, worker in pairs(Desk.workers()) do
    if worker.lease_until > Desk.now then
        told[#told + 1] = id
        told[#told + 1] = Rows.of_worker(worker)
    end
end
return told
