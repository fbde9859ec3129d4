-- begin.lua: the gate. ROUTED → FETCHING if domain and budgets allow a request at this moment.
--
-- KEYS[1]  record   gossamer:{<crawl>}:crawl; the other keys of the crawl begin as it does
-- ARGV[1]  now      seconds since 1970, for tests; empty: the server's own time
-- ARGV[2]  worker
-- ARGV[3]  epoch    the seat that the caller has
-- ARGV[4]  ids      16 bytes each, one after another
-- Uses     desk, hands, gate, budgets
-- Returns  codes of Gate with seconds, nine bytes for each id; the bytes that may be received; how many hosts the scope has
-- In Lua because a request must not begin that another's beginning forbids.
local record, now, worker, epoch, ids = KEYS[1], ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4]
Desk.open(record, now)
local seated = Desk.seated(worker, epoch)
ids = Desk.split_ids(ids)
Desk.fetch(ids)

local function begin(id)
    local url, domain = Gating.in_hand(seated, id)
    if not url then return Gate.CLOSED end
    if url.state == FETCHING then
        if domain.busy == id then return Gate.GO end -- its first answer was lost
        return Gating.knock(url, domain, seated) -- its request is over, and nobody knew: a ledger that forgot its last second
    end
    local code, seconds = Gating.may_not_start(url, domain)
    if not code then code, seconds = Gating.closed_gate(domain) end
    if not code then code, seconds = Gating.company(url, seated) end
    if not code then code, seconds = Gating.out_of_pages() end
    if not code then code, seconds = Gating.out_of_bytes() end
    if code then return code, seconds end
    Desk.move(url, FETCHING, worker)
    Hands.start_request(url, domain)
    Budgets.count_page(domain)
    Desk.change_worker(seated).fetching = seated.fetching + 1
    if url.suspect ~= 0 then Hands.leave_alone(seated, 1) end
    return Gate.GO
end

local status, answers = Desk.books.status, {}
for at, id in ipairs(ids) do answers[at] = Gating.answer(begin(id)) end
if next(Desk.changed_domains) or Desk.books.status ~= status then Desk.write_back() end
return Gating.told(answers)
