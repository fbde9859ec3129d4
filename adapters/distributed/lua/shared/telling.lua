-- telling.lua: what those who read are told. Rows go out as they are: the adapter takes them apart.
--
-- Uses     desk
local Telling = {}

function Telling.crawl()
    local kept = redis.call("HMGET", Desk.record, "books", "rules", "settings")
    return { kept[1], kept[2], kept[3], redis.call("SMEMBERS", Desk.key("scope")) }
end

-- id, row, id, row …
function Telling.urls(ids)
    Shelf.fetch(Desk.url_rows, ids)
    local told = {}
    for _, id in ipairs(ids) do
        told[#told + 1] = id
        told[#told + 1] = Shelf.get(Desk.url_rows, id)
    end
    return told
end
