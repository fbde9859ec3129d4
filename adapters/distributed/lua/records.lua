-- records.lua: what is known of each of these URLs.
--
-- KEYS[1]  record   gossamer:{<crawl>}:crawl; the other keys of the crawl begin as it does
-- ARGV[1]  now      seconds since 1970, for tests; empty: the server's own time
-- ARGV[2]  ids      16 bytes each, one after another
-- Uses     desk, telling
-- Returns  id, row or nothing, of each
-- In Lua because they must be of one moment.
local record, now, ids = KEYS[1], ARGV[1], ARGV[2]
Desk.open(record, now)
return Telling.urls(Desk.split_ids(ids))
