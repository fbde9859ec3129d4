-- routing.lua: which worker a URL goes to.
--
-- Uses     desk
local Routing = {}

-- How many URLs of one domain may be with its worker: some two seconds of work, so that the best are chosen late.
function Routing.window(delay_s)
    if delay_s * 64 <= 2 then return 64 end
    return math.max(2, math.floor(2 / delay_s))
end

-- Whether window, not_before and, while it has something out, the owner's load leave room for one more of the domain.
function Routing.may_take_more(domain)
    if domain.out >= Routing.window(domain.delay_s) or Desk.now < domain.not_before then return false end
    return domain.out == 0 or Desk.workers()[domain.owner].load < Desk.rules.queue_size
end

-- While something is out, the worker that has it; else the last one if it may still be; else the least loaded.
function Routing.owner(domain)
    local workers, last = Desk.workers(), domain.owner
    if domain.out > 0 then return workers[last] end
    if last and domain.owner_until > Desk.now and Routing.has_room(workers[last]) then return workers[last] end
    local best
    for _, worker in pairs(workers) do
        if Routing.has_room(worker) and (not best or Routing.is_before(worker, best)) then best = worker end
    end
    return best
end

function Routing.has_room(worker)
    return worker and worker.lease_until > Desk.now and worker.load < Desk.rules.queue_size
end

function Routing.is_before(one, other)
    return one.load < other.load or (one.load == other.load and one.id < other.id)
end
