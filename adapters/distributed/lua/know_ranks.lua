-- know_ranks.lua: priorities of domains as somebody outside just gave them, for all frontiers.
--
-- KEYS[1]  record      gossamer:{<crawl>}:crawl; the other keys of the crawl begin as it does
-- ARGV[1]  now         seconds since 1970, for tests; empty: the server's own time
-- ARGV[2]  domains     msgpack: names
-- ARGV[3]  priorities  a byte for each
-- ARGV[4]  for_s       how long they hold
-- Uses     desk, shelf
-- Returns  nothing
-- In Lua because their age is counted by the ledger's own time.
local record, now, domains, priorities, for_s = KEYS[1], ARGV[1], cmsgpack.unpack(ARGV[2]), ARGV[3], tonumber(ARGV[4])
Desk.open(record, now)
local ranks = Desk.shelf("ranks")
for place, domain in ipairs(domains) do
    Shelf.put(ranks, domain, struct.pack(">dB", Desk.now + for_s, string.byte(priorities, place)))
end
Desk.write_back()
