-- resume.lua: an ended or dead crawl is running, under these rules, and every lease is void at once.
--
-- KEYS[1]  record   gossamer:{<crawl>}:crawl; the other keys of the crawl begin as it does
-- ARGV[1]  now      seconds since 1970, for tests; empty: the server's own time
-- ARGV[2]  rules    what the ledger decides by, as msgpack
-- ARGV[3]  settings the crawl's settings, as their owner wrote them
-- ARGV[4]  certain  "1" if the caller is certain that nobody lives
-- Uses     desk, leases, keeping
-- Returns  nothing
-- In Lua because a worker that lives after all must find its lease void in the step that gives its URLs away.
local record, now, rules, settings, certain = KEYS[1], ARGV[1], ARGV[2], ARGV[3], ARGV[4] == "1"
Desk.open(record, now)
Leases.void_all(certain) -- by the old rules: what is in flight was reserved by them
local goes_on = Desk.books.outcome ~= COMPLETE
if goes_on then
    Desk.books.status, Desk.books.outcome = RUNNING, nil
    Desk.rules = cmsgpack.unpack(rules)
    Keeping.prolong()
end
Desk.write_back()
if goes_on then
    redis.call("HSET", record, "rules", rules, "settings", settings)
    Keeping.renew_all()
end
