-- pass_up.lua: ROUTED → CLOSED without a request: robots forbid it, its address is refused.
--
-- KEYS[1]  record   gossamer:{<crawl>}:crawl; the other keys of the crawl begin as it does
-- ARGV[1]  now      seconds since 1970, for tests; empty: the server's own time
-- ARGV[2]  worker
-- ARGV[3]  epoch    the seat that the caller has
-- ARGV[4]  passed   msgpack: [id, outcome, reason] of each
-- Uses     desk, hands
-- Returns  nothing
-- In Lua because the URL must be let go in the step that closes it.
local record, now, worker, epoch, passed = KEYS[1], ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), cmsgpack.unpack(ARGV[4])
Desk.open(record, now)
Desk.seated(worker, epoch)
for _, one in ipairs(passed) do
    local url = Desk.url(one[1])
    if url and url.state == ROUTED and url.worker == worker then Hands.close_open(url, one[2], one[3]) end
end
if next(Desk.changed_urls) then Desk.write_back() end
