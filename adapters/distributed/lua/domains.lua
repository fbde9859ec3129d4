-- domains.lua: a sample for display, of domains with something out or due.
--
-- KEYS[1]  record   gossamer:{<crawl>}:crawl; the other keys of the crawl begin as it does
-- ARGV[1]  now      seconds since 1970, for tests; empty: the server's own time
-- ARGV[2]  most
-- Uses     desk, shelf
-- Returns  name, row of each
-- In Lua because they must be of one moment.
local record, now, most = KEYS[1], ARGV[1], tonumber(ARGV[2])
Desk.open(record, now)
if most <= 0 then return {} end
local told = {}

local function tell(names, is_wanted)
    Shelf.fetch(Desk.domain_rows, names)
    for _, name in ipairs(names) do
        if #told < 2 * most and is_wanted(Desk.domain(name)) then
            told[#told + 1] = name
            told[#told + 1] = Shelf.get(Desk.domain_rows, name)
        end
    end
end

tell(redis.call("ZRANGE", Desk.key("out"), 0, most - 1), function() return true end)
-- Those that are due may have something out as well, and were told already: twice as many hold enough that were not.
tell(redis.call("ZRANGE", Desk.key("due"), 0, 2 * most - 1), function(domain) return domain.out == 0 end)
return told
