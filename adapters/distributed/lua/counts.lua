-- counts.lua: the crawl in numbers.
--
-- KEYS[1]  record   gossamer:{<crawl>}:crawl; the other keys of the crawl begin as it does
-- ARGV[1]  now      seconds since 1970, for tests; empty: the server's own time
-- Uses     desk
-- Returns  its books; and with how many of each: outcomes, reasons for which links were refused, budgets that closed URLs
-- In Lua because they must be of one moment.
local record, now = KEYS[1], ARGV[1]
Desk.open(record, now)
local told = { redis.call("HGET", record, "books") }
for _, name in ipairs({ "outcomes", "refused", "budgets" }) do told[#told + 1] = redis.call("HGETALL", Desk.key(name)) end
return told
