-- rows.lua: the records of URLs, domains, sites and workers as bytes, so that a million of them fit.
--
-- adapters/distributed/ledger_rows.py reads the same bytes: a row that is only shown is not taken apart here.
local Rows = {
    URL = ">I5BI2BBBBI7I2BddI2", -- and what never changes (domain, url, parent), so long; and the ending
    URL_BYTES = 40,
    DOMAIN = ">I4I2dI4I4ddddI4I4I4I4", -- and busy, closed, site
    SITE = ">I4I4B",
    WORKER = ">I7dI4I4I4I4", -- and the process
    NOBODY = 65535, -- as a worker
    NEVER = -1, -- as due_at
}

function Rows.url(id, row)
    local n, state, worker, priority, deaths, deferrals, pardoned, suspect, depth, hop, added_at, changed_at, size =
        struct.unpack(Rows.URL, row)
    if worker == Rows.NOBODY then worker = nil end
    local from = Rows.URL_BYTES + 1
    return {
        id = id, n = n, state = state, worker = worker, priority = priority, deaths = deaths, deferrals = deferrals,
        pardoned = pardoned, suspect = suspect, depth = depth, hop = hop, added_at = added_at, changed_at = changed_at,
        constant = string.sub(row, from, from + size - 1),
        domain = struct.unpack(">I2c0", row, from),
        ending = string.sub(row, from + size),
        -- As the indexes have it.
        was_state = state, was_worker = worker, was_priority = priority, was_suspect = suspect,
    }
end

function Rows.new_url(id, n, now, url, domain, depth, hop, parent)
    return {
        id = id, n = n, state = WAITING, priority = UNRANKED, deaths = 0, deferrals = 0, pardoned = 0, suspect = 0,
        depth = depth, hop = hop, added_at = now, changed_at = now, domain = domain, ending = "",
        constant = struct.pack(">I2c0I2c0Bc0", #domain, domain, #url, url, #parent, parent),
    }
end

function Rows.of_url(url)
    return struct.pack(
        Rows.URL, url.n, url.state, url.worker or Rows.NOBODY, url.priority, url.deaths, math.min(url.deferrals, 255),
        url.pardoned, url.suspect, url.depth, url.hop, url.added_at, url.changed_at, #url.constant
    ) .. url.constant .. url.ending
end

-- How a URL ended, or why it is where it is: `outcome` is empty while it is open. `facts` are its worker's own bytes.
function Rows.ending(outcome, reason, facts)
    return struct.pack(">Bc0I4c0", #outcome, outcome, #reason, reason) .. facts
end

function Rows.domain(name, row)
    local n, owner, owner_until, out, parked, next_at, delay_s, not_before, due_at, failures, rests, stored, begun, from =
        struct.unpack(Rows.DOMAIN, row)
    local busy, closed, site = struct.unpack(">Bc0Bc0Bc0", row, from)
    if owner == Rows.NOBODY then owner = nil end
    if due_at == Rows.NEVER then due_at = nil end
    return {
        name = name, n = n, owner = owner, owner_until = owner_until, out = out, parked = parked, next_at = next_at,
        delay_s = delay_s, not_before = not_before, due_at = due_at, failures = failures, rests = rests, stored = stored,
        begun = begun, site = site,
        busy = busy ~= "" and busy or nil, closed = closed ~= "" and closed or nil,
        was_out = out, was_due_at = due_at,
    }
end

function Rows.new_domain(name, n, delay_s, site)
    return {
        name = name, n = n, site = site, begun = 0, owner_until = 0, out = 0, parked = 0, next_at = 0, delay_s = delay_s, not_before = 0,
        failures = 0, rests = 0, stored = 0, was_out = 0,
    }
end

function Rows.of_domain(domain)
    local busy, closed = domain.busy or "", domain.closed or ""
    return struct.pack(
        Rows.DOMAIN, domain.n, domain.owner or Rows.NOBODY, domain.owner_until, domain.out, domain.parked, domain.next_at,
        domain.delay_s, domain.not_before, domain.due_at or Rows.NEVER, domain.failures, domain.rests, domain.stored,
        domain.begun
    ) .. struct.pack(">Bc0Bc0Bc0", #busy, busy, #closed, closed, #domain.site, domain.site)
end

-- A registered domain; without a row, one of which nothing was counted.
function Rows.site(name, row)
    if not row then return { name = name, hosts = 0, begun = 0, own = 0 } end
    local hosts, begun, own = struct.unpack(Rows.SITE, row)
    return { name = name, hosts = hosts, begun = begun, own = own }
end

function Rows.of_site(site)
    return struct.pack(Rows.SITE, site.hosts, site.begun, site.own)
end

function Rows.worker(id, row)
    local epoch, lease_until, load, fetching, knocking, alone, from = struct.unpack(Rows.WORKER, row)
    return {
        id = id, epoch = epoch, lease_until = lease_until, load = load, fetching = fetching, knocking = knocking, alone = alone,
        process = string.sub(row, from),
    }
end

function Rows.of_worker(worker)
    return struct.pack(
        Rows.WORKER, worker.epoch, worker.lease_until, worker.load, worker.fetching, worker.knocking, worker.alone
    ) .. worker.process
end
