-- add.lua: unknown URLs become WAITING.
--
-- KEYS[1]  record   gossamer:{<crawl>}:crawl; the other keys of the crawl begin as it does
-- ARGV[1]  now      seconds since 1970, for tests; empty: the server's own time
-- ARGV[2]  worker
-- ARGV[3]  epoch    the seat of the worker that brings them; both are empty if none does
-- ARGV[4]  urls     msgpack: [id, url, domain, depth, hop, parent or nil] of each
-- ARGV[5]  scope    msgpack: hosts that count as the seeds'
-- ARGV[6]  sites    msgpack: the registered domain of each domain and host, where the two differ
-- Uses     desk, budgets, linking
-- Returns  the places (from 0) of the new ones, four bytes each
-- In Lua because a URL is new to one caller only.
local record, now, worker, epoch, urls, scope, sites = KEYS[1], ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6]
urls, scope, sites = cmsgpack.unpack(urls), cmsgpack.unpack(scope), cmsgpack.unpack(sites)
Desk.open(record, now)
if worker ~= "" then Desk.seated(tonumber(worker), tonumber(epoch)) end
Desk.widen_scope(scope, sites)

local ids, names = {}, {}
for at, url in ipairs(urls) do ids[at] = url[1] end
Shelf.fetch(Desk.url_rows, ids)
for at, url in ipairs(urls) do
    if not Desk.known(ids[at]) then names[#names + 1] = url[3] end
end
Desk.fetch_domains(names, sites)

local new = {}
for at, url in ipairs(urls) do
    if not Desk.known(ids[at]) then
        local reason = Budgets.refusal(url[2], url[3], nil, false, sites)
        if reason then
            Linking.refuse(reason, url[2])
        else
            Desk.enter(unpack(url, 1, 6))
            new[#new + 1] = struct.pack(">I4", at - 1)
        end
    end
end
if #new > 0 and Desk.books.outcome == COMPLETE then -- it was, and is no longer
    Desk.books.status, Desk.books.outcome = RUNNING, nil
end
if #new > 0 or next(Desk.appendices) then Desk.write_back() end
return table.concat(new)
