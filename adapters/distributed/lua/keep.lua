-- keep.lua: renews the time to live of a crawl that has not ended.
--
-- KEYS[1]  record   gossamer:{<crawl>}:crawl; the other keys of the crawl begin as it does
-- ARGV[1]  now      seconds since 1970, for tests; empty: the server's own time
-- Uses     desk, keeping
-- Returns  nothing
-- In Lua because all keys must end at one moment: a crawl that is there by halves would be worse than none.
local record, now = KEYS[1], ARGV[1]
Desk.open(record, now)
if Desk.books.status ~= ENDED then -- its time runs from its last step on, whoever still looks after it
    Keeping.prolong()
    Keeping.renew_all() -- first, since a server without memory lets it through: being full must not cost a crawl its life
    Desk.write_back()
end
