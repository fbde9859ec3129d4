-- desk.lua: the rows that a verb is working on, as tables, and how they are written back.
--
-- Uses     shelf, rows, indexes
--
-- A script that fails midway keeps what it wrote. So a verb reads and decides on these tables alone, and writes at its end, all
-- at once (`write_back`), beginning with a command that a server without memory refuses: what comes after it is then let through.
-- A verb that begins with another (route reaps first) writes that one back whole, and goes on.
--
-- Knows: the keys. Must not know: what a verb means.
local Desk = { urls = {}, domains = {}, sites = {}, hosts = {}, some_workers = {}, shelves = {} }

-- Time never goes back: not if the server's clock is set, nor after a fail-over to another server's.
function Desk.open(record, now)
    local found = redis.call("HMGET", record, "books", "rules")
    if not found[1] then error(redis.error_reply("NOCRAWL the ledger holds no such crawl, or its time is over")) end
    Desk.lay_out(record)
    Desk.books, Desk.rules = cmsgpack.unpack(found[1]), cmsgpack.unpack(found[2])
    Desk.now = math.max(Desk.time(now), Desk.books.time)
end

function Desk.lay_out(record)
    Desk.record, Desk.prefix = record, string.sub(record, 1, -1 - #"crawl")
    Desk.url_rows, Desk.domain_rows, Desk.site_rows = Desk.shelf("url"), Desk.shelf("domain"), Desk.shelf("site")
end

-- The server's own, in seconds; or the one that was handed in, for tests.
function Desk.time(handed_in)
    if handed_in ~= "" then return tonumber(handed_in) end
    local time = redis.call("TIME")
    return time[1] + time[2] / 1000000
end

function Desk.key(name)
    return Desk.prefix .. name
end

function Desk.shelf(name)
    local shelf = Desk.shelves[name]
    if not shelf then
        shelf = Shelf.open(Desk.prefix, name)
        Desk.shelves[name] = shelf
    end
    return shelf
end

-- --- The crawl and its workers ---

function Desk.running()
    return Desk.books.status == RUNNING
end

function Desk.open_urls()
    local states = Desk.books.states
    return states[WAITING + 1] + states[PARKED + 1] + states[ROUTED + 1] + states[FETCHING + 1]
end

function Desk.fetching()
    return Desk.books.states[FETCHING + 1]
end

-- Their sites are the seeds' own from here on.
function Desk.widen_scope(hosts, sites)
    for _, host in ipairs(hosts) do
        if not Desk.is_in_scope(host) then
            Desk.hosts[host] = true
            Desk.books.scope_hosts = Desk.books.scope_hosts + 1
            Desk.append("SADD", "scope", host)
            Desk.change_site(sites[host] or host).own = 1
        end
    end
end

function Desk.is_in_scope(host)
    if Desk.hosts[host] == nil then Desk.hosts[host] = redis.call("SISMEMBER", Desk.key("scope"), host) == 1 end
    return Desk.hosts[host]
end

-- All that ever registered, by id.
function Desk.workers()
    if not Desk.has_all_workers then
        Desk.has_all_workers = true
        local workers, found = Desk.some_workers, redis.call("HGETALL", Desk.key("workers"))
        for at = 1, #found, 2 do
            local id = tonumber(found[at])
            workers[id] = workers[id] or Rows.worker(id, found[at + 1])
        end
    end
    return Desk.some_workers
end

function Desk.worker(id)
    local worker = Desk.some_workers[id]
    if not worker and not Desk.has_all_workers then
        local row = redis.call("HGET", Desk.key("workers"), id)
        worker = row and Rows.worker(id, row) or nil
        Desk.some_workers[id] = worker
    end
    return worker
end

function Desk.change_worker(worker)
    Desk.changed_workers[worker.id] = worker
    return worker
end

function Desk.enroll(worker)
    Desk.workers()[worker.id] = worker
    Desk.change_worker(worker)
end

-- The worker, if its seat is still its own. Every verb of a worker begins here.
function Desk.seated(id, epoch)
    local worker = Desk.worker(id)
    if not worker or worker.epoch ~= epoch then
        error(redis.error_reply("FENCED worker " .. id .. " has a newer epoch"))
    end
    if worker.lease_until <= Desk.now then error(redis.error_reply("FENCED the lease of worker " .. id .. " is over")) end
    return worker
end

-- --- URLs ---

-- Ids lie one after another in one argument.
function Desk.split_ids(text)
    local ids = {}
    for from = 1, #text, ID_BYTES do ids[#ids + 1] = string.sub(text, from, from + ID_BYTES - 1) end
    return ids
end

-- URLs, their domains and sites, with one call a shard.
function Desk.fetch(ids)
    Shelf.fetch(Desk.url_rows, ids)
    local names = {}
    for _, id in ipairs(ids) do
        local url = Desk.url(id)
        if url then names[#names + 1] = url.domain end
    end
    Desk.fetch_domains(names, {})
end

-- Those that there are, and their sites; `sites`: of those that there aren't.
function Desk.fetch_domains(names, sites)
    Shelf.fetch(Desk.domain_rows, names)
    local of = {}
    for at, name in ipairs(names) do
        local domain = Desk.domain(name)
        of[at] = domain and domain.site or sites[name] or name
    end
    Shelf.fetch(Desk.site_rows, of)
end

function Desk.url(id)
    local url = Desk.urls[id]
    if not url then
        local row = Shelf.get(Desk.url_rows, id)
        if not row then return nil end
        url = Rows.url(id, row)
        Desk.urls[id] = url
    end
    return url
end

function Desk.known(id)
    return Shelf.get(Desk.url_rows, id) ~= false
end

function Desk.save(url)
    Desk.changed_urls[url.id] = url
end

-- A URL's only way from one state to another: the counts go with it.
function Desk.move(url, state, worker)
    local states = Desk.books.states
    states[url.state + 1] = states[url.state + 1] - 1
    states[state + 1] = states[state + 1] + 1
    url.state, url.worker = state, worker
    Desk.save(url)
end

-- Notes how a URL ended that was moved to CLOSED.
function Desk.close(url, outcome, reason, facts)
    assert(url.state == CLOSED)
    url.ending = Rows.ending(outcome, reason, facts or "")
    Desk.count("outcomes", outcome, 1)
end

-- A new URL, WAITING. Its id must be unknown, and its domain entered.
function Desk.enter(id, text, name, depth, hop, parent)
    local books = Desk.books
    books.known = books.known + 1
    local url = Rows.new_url(id, books.known, Desk.now, text, name, depth, hop, parent or "")
    Shelf.put(Desk.url_rows, id, Rows.of_url(url))
    table.insert(Desk.entered, url)
    books.states[WAITING + 1] = books.states[WAITING + 1] + 1
end

-- --- Domains ---

function Desk.domain(name)
    local domain = Desk.domains[name]
    if not domain then
        local row = Shelf.get(Desk.domain_rows, name)
        if not row then return nil end
        domain = Rows.domain(name, row)
        Desk.domains[name] = domain
    end
    return domain
end

function Desk.change(domain)
    Desk.changed_domains[domain.name] = domain
    return domain
end

function Desk.enter_domain(name, site)
    Desk.books.domains = Desk.books.domains + 1
    Desk.domains[name] = Rows.new_domain(name, Desk.books.domains, Desk.rules.delay_s, site)
    Desk.change(Desk.domains[name])
end

-- A registered domain. One that has no row is one of which nothing was counted.
function Desk.site(name)
    local site = Desk.sites[name]
    if not site then
        site = Rows.site(name, Shelf.get(Desk.site_rows, name))
        Desk.sites[name] = site
    end
    return site
end

function Desk.change_site(name)
    Desk.changed_sites[name] = Desk.site(name)
    return Desk.sites[name]
end

-- --- Writing back ---

-- A value for one of the crawl's lists (or a set, with SADD; or a set by time, with ZADD) when the rest is written. `kept`: no
-- more of them than so many, the newest.
function Desk.append(command, name, value, kept)
    local appendix = Desk.appendices[name]
    if not appendix then
        appendix = { command = command, values = {}, kept = kept }
        Desk.appendices[name] = appendix
    end
    if command == "ZADD" then table.insert(appendix.values, string.format("%.17g", Desk.now)) end
    table.insert(appendix.values, value)
end

function Desk.count(name, what, by)
    local sums = Desk.sums[name] or {}
    Desk.sums[name] = sums
    sums[what] = (sums[what] or 0) + by
end

-- Commands take some thousand arguments, no more: Lua's stack is short.
function Desk.write(command, key, arguments, step)
    local most = 4000 - 4000 % step
    for from = 1, #arguments, most do
        redis.call(command, key, unpack(arguments, from, math.min(from + most - 1, #arguments)))
    end
    Desk.expire(key)
end

-- Every key of a crawl ends at one moment, so that no crawl is ever there by halves. A key that was empty meanwhile was gone,
-- and comes back without an end: asking is cheaper than saying it each time, and is not written to the append-only file.
function Desk.expire(key)
    if redis.call("PTTL", key) == -1 then redis.call("PEXPIREAT", key, Desk.books.expire_ms) end
end

-- For a verb that frees memory or needs none: a write that is never refused, so that the ones after it are let through.
function Desk.let_through()
    redis.call("PEXPIREAT", Desk.record, Desk.books.expire_ms)
end

-- All that the verb changed. The record is first: HSET is refused when there is no memory, and then nothing was written.
function Desk.write_back()
    Desk.books.time = Desk.now
    redis.call("HSET", Desk.record, "books", cmsgpack.pack(Desk.books))
    for id, url in pairs(Desk.changed_urls) do
        url.changed_at = Desk.now
        Shelf.put(Desk.url_rows, id, Rows.of_url(url))
    end
    for name, domain in pairs(Desk.changed_domains) do Shelf.put(Desk.domain_rows, name, Rows.of_domain(domain)) end
    for name, site in pairs(Desk.changed_sites) do Shelf.put(Desk.site_rows, name, Rows.of_site(site)) end
    Indexes.follow(Desk)
    for _, shelf in pairs(Desk.shelves) do Shelf.write_back(shelf, Desk.write) end
    for id, worker in pairs(Desk.changed_workers) do Desk.write("HSET", Desk.key("workers"), { id, Rows.of_worker(worker) }, 2) end
    for name, sums in pairs(Desk.sums) do
        for what, by in pairs(sums) do Desk.write("HINCRBY", Desk.key(name), { what, by }, 2) end
    end
    for name, appendix in pairs(Desk.appendices) do Desk.write_appendix(Desk.key(name), appendix) end
    Desk.clear()
end

function Desk.write_appendix(key, appendix)
    Desk.write(appendix.command, key, appendix.values, appendix.command == "ZADD" and 2 or 1)
    if appendix.kept and appendix.command == "ZADD" then redis.call("ZREMRANGEBYRANK", key, 0, -appendix.kept - 1) end
    if appendix.kept and appendix.command == "LPUSH" then redis.call("LTRIM", key, 0, appendix.kept - 1) end
    if appendix.kept and appendix.command == "RPUSH" then redis.call("LTRIM", key, -appendix.kept, -1) end
end

function Desk.clear()
    Desk.changed_urls, Desk.changed_domains, Desk.changed_sites, Desk.changed_workers = {}, {}, {}, {}
    Desk.entered, Desk.sums, Desk.appendices = {}, {}, {}
end

Desk.clear()
