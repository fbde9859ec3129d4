-- leave.lua: requests of begin or knock are over, their URLs go on: bytes settled, domains idle.
--
-- KEYS[1]  record   gossamer:{<crawl>}:crawl; the other keys of the crawl begin as it does
-- ARGV[1]  now      seconds since 1970, for tests; empty: the server's own time
-- ARGV[2]  worker
-- ARGV[3]  epoch    the seat that the caller has
-- ARGV[4]  leavings msgpack: [id, seconds for which the domain is to be left alone or nil, visit] of each
-- Uses     desk, hands, gate
-- Returns  nothing
-- In Lua because a domain is let go only while it is busy with this id.
local record, now, worker, epoch, leavings = KEYS[1], ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), cmsgpack.unpack(ARGV[4])
Desk.open(record, now)
local seated = Desk.seated(worker, epoch)

local function leave(id, seconds, visit)
    local url, domain = Gating.in_hand(seated, id)
    if not url or domain.busy ~= id then return end
    Hands.end_request(url, domain, visit)
    if seconds then Hands.hold_off(domain, seconds) end
end

for _, leaving in ipairs(leavings) do leave(unpack(leaving, 1, 3)) end
if next(Desk.changed_domains) then Desk.write_back() end
