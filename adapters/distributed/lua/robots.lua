-- robots.lua: what is known of an origin's robots.txt and not too old.
--
-- KEYS[1]  record   gossamer:{<crawl>}:crawl; the other keys of the crawl begin as it does
-- ARGV[1]  now      seconds since 1970, for tests; empty: the server's own time
-- ARGV[2]  origin
-- Uses     desk, shelf
-- Returns  what know_robots was told, or nothing
-- In Lua because its age is counted by the ledger's own time.
local record, now, origin = KEYS[1], ARGV[1], ARGV[2]
Desk.open(record, now)
local row = Shelf.get(Desk.shelf("robots"), origin)
if not row then return false end
local known_until, from = struct.unpack(">d", row)
return known_until > Desk.now and string.sub(row, from)
