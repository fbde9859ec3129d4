-- indexes.lua: who waits, is parked, is held or suspect, and which domains are due: in the order in which verbs ask for them.
--
-- waiting       sorted by (priority, n)                 who waits, best first
-- arrived       list                                    the same by age; those who wait no longer are dropped when they are met
-- parked        sorted by (priority, n)                 all who are parked, best first
-- parked:<0-15> sorted by (domain, priority, n)         the same, one domain's beside one another
-- held          sorted by (worker, priority, n)
-- suspects      sorted by the epoch whose lapse made them suspect
-- due           domains by the time at which they are due
-- out           domains that have something out, in the order in which they became known
--
-- (priority, n) is one number, exact in a double. What begins with a domain or worker is sorted as bytes, all with score 0.
local Indexes = { PLACE = 2 ^ 43 }

function Indexes.rank(url)
    return string.format("%.0f", url.priority * Indexes.PLACE + url.n)
end

function Indexes.parked_key(domain)
    return "parked:" .. domain.n % SHARDS
end

function Indexes.parked(domain, priority, url)
    return struct.pack(">I4BI5", domain.n, priority, url.n) .. url.id
end

function Indexes.held(worker, priority, url)
    return struct.pack(">I2BI5", worker, priority, url.n) .. url.id
end

-- The ids of one domain's parked URLs, the best first.
function Indexes.best_parked(desk, domain, most)
    local from, to = "[" .. struct.pack(">I4", domain.n), "(" .. struct.pack(">I4", domain.n + 1)
    local key = desk.key(Indexes.parked_key(domain))
    return Indexes.ids(redis.call("ZRANGE", key, from, to, "BYLEX", "LIMIT", 0, math.max(most, 0)))
end

-- The ids of what a worker holds, the best first.
function Indexes.held_by(desk, worker)
    local from, to = "[" .. struct.pack(">I2", worker), "(" .. struct.pack(">I2", worker + 1)
    return Indexes.ids(redis.call("ZRANGE", desk.key("held"), from, to, "BYLEX"))
end

-- An id is the end of what is sorted as bytes.
function Indexes.ids(members)
    for at, member in ipairs(members) do members[at] = string.sub(member, -ID_BYTES) end
    return members
end

-- Brings the indexes to where the changed rows are.
function Indexes.follow(desk)
    local by_command = {}
    local function write(command, name, one, other)
        local by_name = by_command[command]
        if not by_name then
            by_name = {}
            by_command[command] = by_name
        end
        local arguments = by_name[name]
        if not arguments then
            arguments = {}
            by_name[name] = arguments
        end
        arguments[#arguments + 1] = one
        arguments[#arguments + 1] = other
    end
    for _, url in ipairs(desk.entered) do
        write("ZADD", "waiting", Indexes.rank(url), url.id)
        write("RPUSH", "arrived", url.id)
    end
    for _, url in pairs(desk.changed_urls) do Indexes.follow_url(desk, url, write) end
    for _, domain in pairs(desk.changed_domains) do Indexes.follow_domain(domain, write) end
    for command, by_name in pairs(by_command) do
        for name, arguments in pairs(by_name) do desk.write(command, desk.key(name), arguments, command == "ZADD" and 2 or 1) end
    end
end

function Indexes.follow_url(desk, url, write)
    if url.state ~= url.was_state or url.priority ~= url.was_priority or url.worker ~= url.was_worker then
        Indexes.take_out(desk, url, write)
        Indexes.put_in(desk, url, write)
    end
    local suspect = url.state ~= CLOSED and url.suspect or 0
    if suspect ~= url.was_suspect then
        if suspect ~= 0 then
            write("ZADD", "suspects", string.format("%.0f", suspect), url.id)
        else
            write("ZREM", "suspects", url.id)
        end
    end
    url.was_state, url.was_priority, url.was_worker, url.was_suspect = url.state, url.priority, url.worker, suspect
end

function Indexes.take_out(desk, url, write)
    local state, priority = url.was_state, url.was_priority
    if state == WAITING and url.state ~= WAITING then
        write("ZREM", "waiting", url.id)
    elseif state == PARKED then
        local domain = desk.domain(url.domain)
        write("ZREM", Indexes.parked_key(domain), Indexes.parked(domain, priority, url))
        if url.state ~= PARKED then write("ZREM", "parked", url.id) end
    elseif (state == ROUTED or state == FETCHING) and url.worker ~= url.was_worker then
        write("ZREM", "held", Indexes.held(url.was_worker, priority, url))
    end
end

function Indexes.put_in(desk, url, write)
    local state, priority = url.state, url.priority
    if state == WAITING then
        write("ZADD", "waiting", Indexes.rank(url), url.id)
        -- In front: it was known before most of those who wait, and there its stale place is met, and dropped, soonest.
        if url.was_state ~= WAITING then write("LPUSH", "arrived", url.id) end
    elseif state == PARKED then
        local domain = desk.domain(url.domain)
        write("ZADD", Indexes.parked_key(domain), 0, Indexes.parked(domain, priority, url))
        write("ZADD", "parked", Indexes.rank(url), url.id)
    elseif url.worker and url.worker ~= url.was_worker then
        write("ZADD", "held", 0, Indexes.held(url.worker, priority, url))
    end
end

function Indexes.follow_domain(domain, write)
    if domain.due_at ~= domain.was_due_at then
        if domain.due_at then
            write("ZADD", "due", string.format("%.17g", domain.due_at), domain.name)
        else
            write("ZREM", "due", domain.name)
        end
    end
    if (domain.out > 0) ~= (domain.was_out > 0) then
        if domain.out > 0 then write("ZADD", "out", domain.n, domain.name) else write("ZREM", "out", domain.name) end
    end
    domain.was_due_at, domain.was_out = domain.due_at, domain.out
end
