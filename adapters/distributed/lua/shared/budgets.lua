-- budgets.lua: what a host, a registered domain and a path may cost: the counters that bound a trap.
--
-- Uses     desk, shelf
--
-- Requests for pages are counted when they begin, so that a host's budget goes to its best URLs and not to those that were found
-- first; hosts of a domain and variants of a path when they are entered, since each would already cost a row. What a budget
-- leaves out is refused at the door, or closed as it is met. Nothing is marked: a crawl resumed with a larger budget goes on.
local Budgets = {}

-- Why no page of this domain is asked for any more; nil while one may be.
function Budgets.spent(domain)
    return Budgets.pages_spent(domain.name, domain.begun, Desk.site(domain.site))
end

-- A request for a page begins.
function Budgets.count_page(domain)
    local site = Desk.change_site(domain.site)
    Desk.change(domain).begun, site.begun = domain.begun + 1, site.begun + 1
end

-- Why an unknown link is not entered; nil if it is to be, and then its host and its family are counted.
function Budgets.refusal(url, name, family, combines, sites)
    local domain, host, hosts = Desk.domain(name), Budgets.host(url), Desk.shelf("host")
    -- A host that is a unit of politeness is known by its domain's row; others have one of their own.
    local known = domain ~= nil
    if host ~= name then known = Shelf.get(hosts, host) ~= false end
    local site = Desk.site(domain and domain.site or sites[name] or name)
    local reason = Budgets.pages_spent(name, domain and domain.begun or 0, site)
        or Budgets.crowded(name, family, combines, site, not known and not Desk.is_in_scope(host))
    if reason then return reason end
    if not known then
        Desk.change_site(site.name).hosts = site.hosts + 1
        if host ~= name then Shelf.put(hosts, host, "1") end
    end
    if not domain then Desk.enter_domain(name, site.name) end
end

-- Seeds' own hosts and domains have no budget of pages but the crawl's.
function Budgets.pages_spent(name, begun, site)
    local rules = Desk.rules
    local reason = Budgets.used_up(Budget.HOST_PAGES, begun, rules.max_host_pages)
    if reason and Desk.is_in_scope(name) then reason = nil end
    if not reason and site.own == 0 then reason = Budgets.used_up(Budget.DOMAIN_PAGES, site.begun, rules.max_domain_pages) end
    if reason and Budgets.is_lifted(name, site) then return nil end
    return reason
end

-- Whether there are as many hosts of its site, or URLs of its path, as there may be; if not, it is counted as one of these.
-- `is_new`: it would be the first of its host.
function Budgets.crowded(name, family, combines, site, is_new)
    if Budgets.is_lifted(name, site) then return nil end
    local reason = is_new and Budgets.used_up(Budget.HOSTS, site.hosts, Desk.rules.max_hosts)
    if reason then return reason end
    if family and Desk.rules.max_variants then return Budgets.count_variant(family, combines) end
end

-- Its URLs are those with a query, and the one without.
function Budgets.count_variant(family, combines)
    local families = Desk.shelf("family")
    local urls = tonumber(Shelf.get(families, family) or 1)
    local reason = combines and Budgets.used_up(Budget.VARIANTS, urls, Desk.rules.max_variants) or nil
    if not reason then Shelf.put(families, family, string.format("%d", urls + 1)) end
    return reason
end

function Budgets.used_up(budget, count, most)
    return most and count >= most and string.format(budget, most) or nil
end

function Budgets.is_lifted(name, site)
    for _, lifted in ipairs(Desk.rules.lifted) do
        if lifted == name or lifted == site.name then return true end
    end
    return false
end

-- The URL's host without port, and without the dot at its end; an IPv6 address keeps its brackets.
function Budgets.host(url)
    local host = string.match(url, "^%a+://(%[[^%]]*%])") or string.match(url, "^%a+://([^/:]+)")
    return (string.gsub(host, "%.$", ""))
end
