-- keeping.lua: how long the crawl is kept.
--
-- Uses     desk
local Keeping = {
    SHELVES = { "url", "domain", "site", "host", "family", "exact", "content", "band", "parked", "robots", "ranks" },
    SINGLE = {
        "workers", "waiting", "arrived", "offered", "parked", "held", "suspects", "due", "out", "scope", "outcomes", "refused",
        "budgets", "refusals", "pages", "outlinks", "poisoned", "notes", "robots_until", "crawl",
    },
}

-- From now on, for as long as the rules say: by the ledger's clock for those who ask, by the server's for the server.
function Keeping.prolong()
    local ttl_s, time = Desk.rules.ttl_s, redis.call("TIME")
    Desk.books.kept_until = Desk.now + ttl_s
    Desk.books.expire_ms = string.format("%.0f", time[1] * 1000 + math.floor(time[2] / 1000) + ttl_s * 1000)
end

-- All keys that a crawl can have; the number is fixed.
function Keeping.renew_all()
    for _, name in ipairs(Keeping.SHELVES) do
        for shard = 0, SHARDS - 1 do redis.call("PEXPIREAT", Desk.key(name .. ":" .. shard), Desk.books.expire_ms) end
    end
    for _, name in ipairs(Keeping.SINGLE) do redis.call("PEXPIREAT", Desk.key(name), Desk.books.expire_ms) end
end
