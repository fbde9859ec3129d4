-- asking.lua: which WAITING URLs to offer. Looks at a bounded number of them.
--
-- Uses     desk
--
-- offered   sorted by when it was offered: those of the last lease, whose hints are probably on their way
local Asking = { AT_ONCE = 500, LOOKS = 4 }

function Asking.new(most, idle)
    local looks = math.ceil(most * Asking.LOOKS / Asking.AT_ONCE) + 1
    return { ids = {}, chosen = {}, offered_before = idle and math.huge or Desk.now - Desk.rules.lease_s, next = 0, looks = looks }
end

-- Takes of these, in order, until there are `most`.
function Asking.choose(found, ids, most)
    local offered_at = redis.call("ZMSCORE", Desk.key("offered"), unpack(ids))
    for at, id in ipairs(ids) do
        if #found.ids >= most then return at - 1 end
        local free = not offered_at[at] or tonumber(offered_at[at]) <= found.offered_before
        if free and not found.chosen[id] then
            found.chosen[id] = true
            found.ids[#found.ids + 1] = id
        end
    end
    return #ids
end

-- By priority, from where the last call for it stopped.
function Asking.best(found, most)
    while #found.ids < most and found.looks > 0 do
        local ids = redis.call("ZRANGE", Desk.key("waiting"), found.next, found.next + Asking.AT_ONCE - 1)
        if #ids == 0 then return end
        found.next = found.next + Asking.choose(found, ids, most)
        found.looks = found.looks - 1
    end
end

-- By age, so that the worst are met as well.
function Asking.oldest(found, most)
    local arrived = redis.call("LRANGE", Desk.key("arrived"), 0, math.min(most * Asking.LOOKS, 4000) - 1)
    if #arrived == 0 then return end
    local places, waiting, seen = redis.call("ZMSCORE", Desk.key("waiting"), unpack(arrived)), {}, {}
    for at, id in ipairs(arrived) do
        if places[at] and not seen[id] then
            seen[id] = true
            waiting[#waiting + 1] = id
        end
    end
    if #waiting > 0 then Asking.choose(found, waiting, most) end
    found.arrived, found.waiting = #arrived, waiting
end

-- What was offered, and when. And those who wait no longer are dropped from the list by age.
function Asking.note(found)
    local offers = {}
    for _, id in ipairs(found.ids) do
        offers[#offers + 1] = string.format("%.17g", Desk.now)
        offers[#offers + 1] = id
    end
    if #offers > 0 then Desk.write("ZADD", Desk.key("offered"), offers, 2) end
    if found.arrived and #found.waiting < found.arrived then
        local back = {}
        for at = #found.waiting, 1, -1 do back[#back + 1] = found.waiting[at] end
        redis.call("LTRIM", Desk.key("arrived"), found.arrived, -1)
        if #back > 0 then Desk.write("LPUSH", Desk.key("arrived"), back, 1) end
    end
    redis.call("ZREMRANGEBYSCORE", Desk.key("offered"), "-inf", string.format("%.17g", Desk.now - Desk.rules.lease_s))
end
