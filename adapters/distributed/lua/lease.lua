-- lease.lua: takes or prolongs a named lease. Needs no crawl.
--
-- KEYS[1]  lease    gossamer:{<crawl>}:lease:<name>
-- ARGV[1]  now      seconds since 1970, for tests; empty: the server's own time
-- ARGV[2]  holder
-- ARGV[3]  for_s    how long, from now
-- ARGV[4]  ttl_s    how long the key is kept at most
-- Uses     desk
-- Returns  1: it is the holder's; 0: it is another's
-- In Lua because a lease that is over has one new holder, not two.
local lease, now, holder, for_s, ttl_s = KEYS[1], ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local time, taken = Desk.time(now), redis.call("GET", lease)
if taken then
    local held_until, from = struct.unpack(">d", taken)
    if held_until > time and string.sub(taken, from) ~= holder then return 0 end
end
local kept_ms = math.max(1, math.ceil(math.min(for_s, ttl_s) * 1000))
redis.call("SET", lease, struct.pack(">d", time + for_s) .. holder, "PX", string.format("%.0f", kept_ms))
return 1
