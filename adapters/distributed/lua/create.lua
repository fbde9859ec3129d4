-- create.lua: the crawl's record, running. One that exists is left as it is.
--
-- KEYS[1]  record   gossamer:{<crawl>}:crawl; the other keys of the crawl begin as it does
-- ARGV[1]  now      seconds since 1970, for tests; empty: the server's own time
-- ARGV[2]  rules    what the ledger decides by, as msgpack
-- ARGV[3]  settings the crawl's settings, as their owner wrote them
-- Uses     desk, keeping
-- Returns  nothing
-- In Lua because the record must not be there for a moment without its end.
local record, now, rules, settings = KEYS[1], ARGV[1], ARGV[2], ARGV[3]
if redis.call("EXISTS", record) == 1 then return end
Desk.lay_out(record)
Desk.now, Desk.rules = Desk.time(now), cmsgpack.unpack(rules)
Desk.books = {
    status = RUNNING, created_at = Desk.now, scope_hosts = 0, states = { 0, 0, 0, 0, 0 }, stored = 0, requests = 0,
    used_bytes = 0, charged_bytes = 0, reserved_bytes = 0, domains = 0, known = 0, alone = 0,
}
Keeping.prolong()
redis.call("HSET", record, "rules", rules, "settings", settings)
Desk.write_back()
Desk.expire(record)
