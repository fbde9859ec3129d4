-- known_ranks.lua: the priorities that somebody outside gave to domains, and that are not too old.
--
-- KEYS[1]  record   gossamer:{<crawl>}:crawl; the other keys of the crawl begin as it does
-- ARGV[1]  now      seconds since 1970, for tests; empty: the server's own time
-- ARGV[2]  domains  msgpack: names
-- Uses     desk, shelf
-- Returns  a byte for each name: its priority, or UNKNOWN_RANK
-- In Lua because their age is counted by the ledger's own time.
local record, now, domains = KEYS[1], ARGV[1], cmsgpack.unpack(ARGV[2])
Desk.open(record, now)
local ranks, told = Desk.shelf("ranks"), {}
Shelf.fetch(ranks, domains)
for place, domain in ipairs(domains) do
    local row = Shelf.get(ranks, domain)
    told[place] = string.char(UNKNOWN_RANK)
    if row then
        local known_until, priority = struct.unpack(">dB", row)
        if known_until > Desk.now then told[place] = string.char(priority) end
    end
end
return table.concat(told)
