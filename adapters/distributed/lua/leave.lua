-- leave.lua: the request of begin or knock is over, the URL goes on: bytes settled, domain idle.
--
-- KEYS[1]  record   gossamer:{<crawl>}:crawl; the other keys of the crawl begin as it does
-- ARGV[1]  now      seconds since 1970, for tests; empty: the server's own time
-- ARGV[2]  worker
-- ARGV[3]  epoch    the seat that the caller has
-- ARGV[4]  id
-- ARGV[5]  visit    msgpack: what the request did to its domain
-- ARGV[6]  wait     seconds for which the domain is to be left alone; empty: none
-- Uses     desk, hands, gate
-- Returns  nothing
-- In Lua because it changes something only while the domain is busy with this id.
local record, now, worker, epoch, id = KEYS[1], ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4]
local visit, wait = cmsgpack.unpack(ARGV[5]), tonumber(ARGV[6])
Desk.open(record, now)
local url, domain = Gating.in_hand(Desk.seated(worker, epoch), id)
if url and domain.busy == id then
    Hands.end_request(url, domain, visit)
    if wait then Hands.hold_off(domain, wait) end
    Desk.write_back()
end
