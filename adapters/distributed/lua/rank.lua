-- rank.lua: sets the priorities of those that are WAITING or PARKED.
--
-- KEYS[1]  record   gossamer:{<crawl>}:crawl; the other keys of the crawl begin as it does
-- ARGV[1]  now      seconds since 1970, for tests; empty: the server's own time
-- ARGV[2]  ids      16 bytes each, one after another
-- ARGV[3]  ranks    their priorities, a byte each
-- Uses     desk
-- Returns  nothing
-- In Lua because a URL that is routed meanwhile keeps the priority it was routed by.
local record, now, ids, ranks = KEYS[1], ARGV[1], ARGV[2], ARGV[3]
Desk.open(record, now)
ids = Desk.split_ids(ids)
Desk.fetch(ids)
for at, id in ipairs(ids) do
    local url, priority = Desk.url(id), string.byte(ranks, at)
    if url and (url.state == WAITING or url.state == PARKED) and url.priority ~= priority then
        url.priority = priority
        Desk.save(url)
    end
end
if next(Desk.changed_urls) then Desk.write_back() end
