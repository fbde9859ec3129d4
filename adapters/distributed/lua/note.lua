-- note.lua: leaves a text for whoever watches the crawl, in the place of the last one of that name.
--
-- KEYS[1]  record   gossamer:{<crawl>}:crawl; the other keys of the crawl begin as it does
-- ARGV[1]  now      seconds since 1970, for tests; empty: the server's own time
-- ARGV[2]  name
-- ARGV[3]  text
-- Uses     desk
-- Returns  nothing
-- In Lua because it ends when the crawl does.
local record, now, name, text = KEYS[1], ARGV[1], ARGV[2], ARGV[3]
Desk.open(record, now)
Desk.let_through() -- one a worker; and it may say that the server is full
Desk.write("HSET", Desk.key("notes"), { name, text }, 2)
