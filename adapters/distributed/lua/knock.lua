-- knock.lua: the same gate for a request that is not the URL's first: robots.txt (ROUTED), the one retry (FETCHING).
--
-- KEYS[1]  record   gossamer:{<crawl>}:crawl; the other keys of the crawl begin as it does
-- ARGV[1]  now      seconds since 1970, for tests; empty: the server's own time
-- ARGV[2]  worker
-- ARGV[3]  epoch    the seat that the caller has
-- ARGV[4]  id
-- Uses     desk, gate
-- Returns  a code of Gate with seconds, nine bytes; the bytes that may be received; how many hosts the scope has
-- In Lua because a request must not begin that another's beginning forbids.
local record, now, worker, epoch, id = KEYS[1], ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4]
Desk.open(record, now)
local seated = Desk.seated(worker, epoch)

local function knock()
    local url, domain = Gating.in_hand(seated, id)
    if not url then return Gate.CLOSED end
    local dropped = url.state == ROUTED and Gating.may_not_start(url, domain)
    if dropped then return dropped end
    return Gating.knock(url, domain, seated)
end

local status, answer = Desk.books.status, Gating.answer(knock())
if next(Desk.changed_domains) or Desk.books.status ~= status then Desk.write_back() end
return Gating.told({ answer })
