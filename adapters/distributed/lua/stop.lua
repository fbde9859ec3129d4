-- stop.lua: a running crawl drains. What is FETCHING goes on to its end, nothing else begins.
--
-- KEYS[1]  record   gossamer:{<crawl>}:crawl; the other keys of the crawl begin as it does
-- ARGV[1]  now      seconds since 1970, for tests; empty: the server's own time
-- ARGV[2]  outcome
-- Uses     desk
-- Returns  nothing
-- In Lua because a crawl that drains already keeps its first reason.
local record, now, outcome = KEYS[1], ARGV[1], ARGV[2]
Desk.open(record, now)
if Desk.running() then
    Desk.books.status, Desk.books.outcome = DRAINING, outcome
    Desk.let_through() -- it needs no memory, and whoever wants a full server's crawl to end must be heard
    Desk.write_back()
end
