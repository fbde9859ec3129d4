-- defer.lua: FETCHING → PARKED, let go; the domain's not_before moves on, never back.
--
-- KEYS[1]  record   gossamer:{<crawl>}:crawl; the other keys of the crawl begin as it does
-- ARGV[1]  now      seconds since 1970, for tests; empty: the server's own time
-- ARGV[2]  worker
-- ARGV[3]  epoch    the seat that the caller has
-- ARGV[4]  deferrals msgpack: [id, seconds or nil, reason, visit] of each
-- Uses     desk, hands
-- Returns  nothing
-- In Lua because the URL must be parked in the step that frees its domain.
local record, now, worker, epoch, deferrals = KEYS[1], ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), cmsgpack.unpack(ARGV[4])
Desk.open(record, now)
Desk.seated(worker, epoch)

local function defer(id, seconds, reason, visit)
    local url = Desk.url(id)
    if not url or url.state ~= FETCHING or url.worker ~= worker then return end
    Hands.let_go(url, PARKED, visit)
    if seconds then -- after the visit was settled: this wait is no rest that would excuse its failure
        Hands.hold_off(Desk.domain(url.domain), seconds)
        url.deferrals = url.deferrals + 1
    end
    if reason ~= "" then url.ending = Rows.ending("", reason, "") end
    url.suspect = 0 -- it was begun, and its worker lives
end

for _, deferral in ipairs(deferrals) do defer(unpack(deferral, 1, 4)) end
if next(Desk.changed_urls) then Desk.write_back() end
