-- waiting.lua: WAITING URLs to be hinted at again, three quarters the best and one quarter the oldest.
--
-- KEYS[1]  record   gossamer:{<crawl>}:crawl; the other keys of the crawl begin as it does
-- ARGV[1]  now      seconds since 1970, for tests; empty: the server's own time
-- ARGV[2]  most
-- ARGV[3]  idle     "1": the queues are empty, so those that were offered within the last lease are offered again
-- Uses     desk, telling, asking
-- Returns  id, row of each
-- In Lua because what is offered to one frontier is not offered to the next one.
local record, now, most, idle = KEYS[1], ARGV[1], tonumber(ARGV[2]), ARGV[3] == "1"
Desk.open(record, now)
local found = Asking.new(most, idle)
Asking.best(found, most - math.floor(most / 4))
Asking.oldest(found, most)
Asking.best(found, most) -- where many of the oldest are routed by now
Asking.note(found)
return Telling.urls(found.ids)
