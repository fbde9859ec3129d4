-- finish.lua: FETCHING → CLOSED, let go, and the links added in the same step.
--
-- KEYS[1]  record   gossamer:{<crawl>}:crawl; the other keys of the crawl begin as it does
-- ARGV[1]  now      seconds since 1970, for tests; empty: the server's own time
-- ARGV[2]  worker
-- ARGV[3]  epoch    the seat that the caller has
-- ARGV[4]  closings msgpack: [id, outcome, reason, facts, stored, visit, link ids, link words, families, target, host, sites,
--                   refused]
-- Uses     desk, hands, linking
-- Returns  of each new URL the place (from 0) of its closing, its own among the links, its depth and hop: 11 bytes
-- In Lua because no page may be closed without its links, and no link be new to two callers.
local record, now, worker, epoch, closings = KEYS[1], ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), cmsgpack.unpack(ARGV[4])
Desk.open(record, now)
Desk.seated(worker, epoch)

local ids = {}
for at, closing in ipairs(closings) do ids[at] = closing[1] end
Desk.fetch(ids)

local function finish(url, closing)
    local _, outcome, reason, facts, stored, visit, link_ids, words, families, target, host, sites, refused = unpack(closing, 1, 13)
    Hands.let_go(url, CLOSED, visit, stored)
    Desk.close(url, outcome, reason, facts)
    if stored then
        local domain = Desk.domain(url.domain)
        domain.stored, Desk.books.stored = domain.stored + 1, Desk.books.stored + 1
        Desk.append("RPUSH", "pages", url.id)
        if Desk.rules.keep_outlinks then Linking.note_outlinks(url, link_ids) end
    end
    if host then Desk.widen_scope({ host }, sites) end
    Linking.note_refused(refused)
    return { url = url, link_ids = link_ids, words = words, families = families, target = target, sites = sites }
end

local pages = {}
for at, closing in ipairs(closings) do
    local url = Desk.url(closing[1])
    if url and url.state == FETCHING and url.worker == worker then
        local page = finish(url, closing)
        page.place = at - 1
        pages[#pages + 1] = page
    end
end
local new = Linking.enter(pages)
if #pages > 0 then Desk.write_back() end
return new
