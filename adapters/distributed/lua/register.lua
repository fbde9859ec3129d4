-- register.lua: reaps; then the lowest worker id without a lease, under a new epoch.
--
-- KEYS[1]  record   gossamer:{<crawl>}:crawl; the other keys of the crawl begin as it does
-- ARGV[1]  now      seconds since 1970, for tests; empty: the server's own time
-- ARGV[2]  process  what dies together
-- ARGV[3]  formerly the epoch of the seat that the caller was fenced from; empty: it had none
-- Uses     desk, leases
-- Returns  the worker's id and its epoch
-- In Lua because two that register at once must not get one id, nor an epoch that is not the newest.
local record, now, process, formerly = KEYS[1], ARGV[1], ARGV[2], ARGV[3]
Desk.open(record, now)
Leases.reap()
if formerly ~= "" then Leases.exonerate(formerly) end

local workers, id, last = Desk.workers(), 0, 0
while workers[id] and workers[id].lease_until > Desk.now do id = id + 1 end
for _, worker in pairs(workers) do last = math.max(last, worker.epoch) end -- of all: a suspect names its epoch alone
-- By the clock as well as by counting: a ledger that forgot its last second can't hand out an epoch twice.
local epoch = math.max(last + 1, math.floor(Desk.now * 1000000))
local lease_until = Desk.now + Desk.rules.lease_s
Desk.enroll({ id = id, epoch = epoch, process = process, lease_until = lease_until, load = 0, fetching = 0, knocking = 0, alone = 0 })
Desk.write_back()
return { id, epoch }
