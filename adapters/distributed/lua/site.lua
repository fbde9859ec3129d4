-- site.lua: a registered domain, and what its budgets have counted.
--
-- KEYS[1]  record   gossamer:{<crawl>}:crawl; the other keys of the crawl begin as it does
-- ARGV[1]  now      seconds since 1970, for tests; empty: the server's own time
-- ARGV[2]  name
-- Uses     desk, shelf
-- Returns  its row, or nothing
-- In Lua because every verb is: a crawl whose time is over has no sites, not none.
local record, now, name = KEYS[1], ARGV[1], ARGV[2]
Desk.open(record, now)
return Shelf.get(Desk.site_rows, name)
