-- crawl.lua: the crawl's record.
--
-- KEYS[1]  record   gossamer:{<crawl>}:crawl; the other keys of the crawl begin as it does
-- ARGV[1]  now      seconds since 1970, for tests; empty: the server's own time
-- Uses     desk, telling
-- Returns  its books, its rules, its settings, the hosts of its scope
-- In Lua because they must be of one moment.
local record, now = KEYS[1], ARGV[1]
Desk.open(record, now)
return Telling.crawl()
