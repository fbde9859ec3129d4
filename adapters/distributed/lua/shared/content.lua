-- content.lua: the content index. Is a page that says this stored already?
--
-- Uses     desk
--
-- exact:<0-15>    hash of the text → the id of its URL
-- content:<0-15>  n → the id; while it may still be withdrawn, the entry's keys; and the signature, if it has bands
-- band:<0-15>     band → the n of those that have it, the newest first
--
-- An entry is there while its URL is FETCHING, and stays if the page is stored: until then it may yet fail, and its like waits.
local Content = {
    -- Compared with: those that share the most bands, the newest of them first. A page of one template with many others shares a
    -- band or two with each, and nearly all with its twin.
    CANDIDATES = 16,
    KEPT = 64, -- in a band, the newest: one that a whole site shares must not cost a walk over the site
    PLACE_BYTES = 5,
    VALUE_BYTES = 4,
}

function Content.exacts() return Desk.shelf("exact") end
function Content.entries() return Desk.shelf("content") end
function Content.bands() return Desk.shelf("band") end

-- All that judging these reads, with one call a shard.
function Content.fetch(contents)
    local ids, exacts, bands, places = {}, {}, {}, {}
    for at, content in ipairs(contents) do
        ids[at], exacts[at] = content[1], content[2]
        for _, band in ipairs(content[4]) do bands[#bands + 1] = band end
    end
    Shelf.fetch(Desk.url_rows, ids)
    Shelf.fetch(Content.exacts(), exacts)
    Shelf.fetch(Content.bands(), bands)
    for _, id in ipairs(ids) do
        if Desk.url(id) then places[#places + 1] = Content.place(Desk.url(id).n) end
    end
    Shelf.fetch(Content.entries(), places)
end

function Content.changed()
    return next(Content.entries().changed) ~= nil
end

function Content.place(n)
    return struct.pack(">I5", n)
end

-- The id, the exact hash and the bands of an entry that is not stored yet, and its signature.
function Content.pack(id, exact, bands, signature)
    return cmsgpack.pack(id, exact, bands, signature)
end

-- A page is stored: nobody will withdraw it, so what would find its keys again may go.
function Content.keep(url)
    local place = Content.place(url.n)
    local entry = Shelf.get(Content.entries(), place)
    if not entry then return end
    local id, _, bands, signature = cmsgpack.unpack(entry)
    Shelf.put(Content.entries(), place, #bands > 0 and Content.pack(id, "", {}, signature) or false)
end

-- Takes back the entry of a page that is not stored.
function Content.withdraw(url)
    local place = Content.place(url.n)
    local entry = Shelf.get(Content.entries(), place)
    if not entry then return end
    local _, exact, bands = cmsgpack.unpack(entry)
    Shelf.put(Content.entries(), place, false)
    Shelf.put(Content.exacts(), exact, false)
    for _, band in ipairs(bands) do
        local places = Content.places(band)
        for at, other in ipairs(places) do
            if other == place then
                table.remove(places, at)
                break
            end
        end
        Shelf.put(Content.bands(), band, #places > 0 and table.concat(places))
    end
end

function Content.enter(url, exact, signature, bands)
    local place, distinct, seen = Content.place(url.n), {}, {}
    for _, band in ipairs(bands) do
        if not seen[band] then
            seen[band] = true
            table.insert(distinct, band)
            local places = Content.places(band)
            local at = 1
            while places[at] and places[at] > place do at = at + 1 end
            table.insert(places, at, place)
            Shelf.put(Content.bands(), band, table.concat(places, "", 1, math.min(#places, Content.KEPT)))
        end
    end
    Shelf.put(Content.exacts(), exact, url.id)
    Shelf.put(Content.entries(), place, Content.pack(url.id, exact, distinct, signature))
end

function Content.places(band)
    local row, places = Shelf.get(Content.bands(), band) or "", {}
    for from = 1, #row, Content.PLACE_BYTES do places[#places + 1] = string.sub(row, from, from + Content.PLACE_BYTES - 1) end
    return places
end

-- What to say of a page: FRESH (and it is entered), TWIN with its id and similarity, or LIKE: one like it is being fetched.
function Content.judge(url, exact, signature, bands)
    local same = Shelf.get(Content.exacts(), exact)
    if same == url.id then return Judged.FRESH end
    Content.withdraw(url) -- it was judged before, with another content
    if same and Desk.url(same).state == CLOSED then return Judged.TWIN, same, 1 end
    local near, similarity = Content.nearest(signature, bands)
    if near then return Judged.TWIN, near, similarity end
    if same or similarity then return Judged.LIKE end
    Content.enter(url, exact, signature, bands)
    return Judged.FRESH
end

-- The most similar stored page and its similarity; or nil and the similarity of one that is being fetched. Stored beats fetched.
function Content.nearest(signature, bands)
    local threshold = Desk.rules.similarity
    if not threshold or #bands == 0 then return nil end
    local candidates = Content.candidates(bands)
    local values = #candidates > 0 and Content.values(signature)
    local best, best_similarity, fetched
    for _, place in ipairs(candidates) do
        local id, _, _, other = cmsgpack.unpack(Shelf.get(Content.entries(), place))
        local similarity = Content.agreement(signature, values, other, threshold)
        if similarity >= threshold then
            if Desk.url(id).state ~= CLOSED then
                fetched = similarity
            elseif not best or similarity > best_similarity then
                best, best_similarity = id, similarity
            end
        end
    end
    if best then return best, best_similarity end
    return nil, fetched
end

function Content.candidates(bands)
    local candidates, times = {}, {}
    for _, band in ipairs(bands) do
        for _, place in ipairs(Content.places(band)) do
            if not times[place] then candidates[#candidates + 1] = place end
            times[place] = (times[place] or 0) + 1
        end
    end
    table.sort(candidates, function(one, other)
        if times[one] ~= times[other] then return times[one] > times[other] end
        return one > other
    end)
    for at = #candidates, Content.CANDIDATES + 1, -1 do candidates[at] = nil end
    Shelf.fetch(Content.entries(), candidates)
    return candidates
end

-- The share of places at which two signatures have the same value: an estimate of how alike the pages are. 0 as soon as it can't
-- be `least` any more: of most candidates a few dozen places tell.
function Content.agreement(one, values, other, least)
    if #one ~= #other or one == "" then return 0 end
    if one == other then return 1 end
    local agree, size, count = 0, Content.VALUE_BYTES, #values
    for at, value in ipairs(values) do
        if string.sub(other, (at - 1) * size + 1, at * size) == value then
            agree = agree + 1
        elseif (agree + count - at) / count < least then
            return 0
        end
    end
    return agree / count
end

function Content.values(signature)
    local values, size = {}, Content.VALUE_BYTES
    for from = 1, #signature - size + 1, size do values[#values + 1] = string.sub(signature, from, from + size - 1) end
    return values
end
