-- shelf.lua: a big hash of the crawl, spread over a fixed number of keys.
--
-- One key would serve the verbs as well. But a key is freed in one go when the crawl's time is over, and a server that frees
-- millions of entries answers nobody meanwhile. What a verb needs is read with one call a shard, kept for the verb's time, and
-- written back together.
local Shelf = { AT_ONCE = 1000 }

function Shelf.open(prefix, name)
    return { prefix = prefix .. name .. ":", rows = {}, changed = {} }
end

-- By a key's end and its length: ids and numbers differ in the one, names in the other.
function Shelf.shard_of(key)
    local one, other = string.byte(key, -2, -1)
    return ((one or 0) + (other or 0) + #key) % SHARDS
end

-- Reads those of the keys that aren't here yet. A missing row is `false`.
function Shelf.fetch(shelf, keys)
    local rows, by_shard, shard_of = shelf.rows, {}, Shelf.shard_of
    for _, key in ipairs(keys) do
        if rows[key] == nil then
            rows[key] = false
            local shard = shard_of(key)
            local some = by_shard[shard]
            if some then some[#some + 1] = key else by_shard[shard] = { key } end
        end
    end
    for shard, some in pairs(by_shard) do
        for from = 1, #some, Shelf.AT_ONCE do
            local to = math.min(from + Shelf.AT_ONCE - 1, #some)
            local found = redis.call("HMGET", shelf.prefix .. shard, unpack(some, from, to))
            for at = from, to do rows[some[at]] = found[at - from + 1] end
        end
    end
end

function Shelf.get(shelf, key)
    local row = shelf.rows[key]
    if row == nil then
        row = redis.call("HGET", shelf.prefix .. Shelf.shard_of(key), key)
        shelf.rows[key] = row
    end
    return row
end

-- `false` takes the row away.
function Shelf.put(shelf, key, row)
    shelf.rows[key] = row
    shelf.changed[key] = true
end

-- Hands every change to `write(command, key, arguments, step)`: what belongs together is `step` arguments long.
function Shelf.write_back(shelf, write)
    local set, gone = {}, {}
    for key in pairs(shelf.changed) do
        local shard, row = Shelf.shard_of(key), shelf.rows[key]
        local of_shard = row and set or gone
        local some = of_shard[shard]
        if not some then
            some = {}
            of_shard[shard] = some
        end
        some[#some + 1] = key
        if row then some[#some + 1] = row end
    end
    for shard, some in pairs(set) do write("HSET", shelf.prefix .. shard, some, 2) end
    for shard, some in pairs(gone) do write("HDEL", shelf.prefix .. shard, some, 1) end
    shelf.changed = {}
end
