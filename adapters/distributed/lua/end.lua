-- end.lua: nothing is open: ended, and complete. Or it drains, and nothing is in flight: ended.
--
-- KEYS[1]  record   gossamer:{<crawl>}:crawl; the other keys of the crawl begin as it does
-- ARGV[1]  now      seconds since 1970, for tests; empty: the server's own time
-- Uses     desk, keeping, telling
-- Returns  the crawl's record
-- In Lua because nothing may be added between the look and the end.
local record, now = KEYS[1], ARGV[1]
Desk.open(record, now)
local books = Desk.books
local complete = Desk.open_urls() == 0
local drained = books.status == DRAINING and Desk.fetching() == 0 and books.reserved_bytes == 0
if books.status ~= ENDED and (complete or drained) then
    books.status = ENDED
    if complete then books.outcome = COMPLETE end
    Keeping.prolong() -- this is its last step: its time runs from here
    Keeping.renew_all()
    Desk.write_back()
end
return Telling.crawl()
