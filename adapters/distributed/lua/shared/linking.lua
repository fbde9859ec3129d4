-- linking.lua: the links that closed pages brought.
--
-- Uses     desk, budgets
local Linking = {
    REFUSALS_KEPT = 3000, FAMILY_BYTES = 8,
    TARGET = 4294967295, -- the target's place among the links
    shown = {},
}

-- Enters what is unknown of all these pages, looked up together; the places of the new ones, as `finish` tells them.
function Linking.enter(pages)
    Linking.look_up(pages)
    Linking.fetch_domains(pages)
    local new = {}
    local function enter(page, at, id, text, name, family, combines, depth, hop)
        if Desk.known(id) then return end -- a page before it had the same link
        local reason = Budgets.refusal(text, name, family, combines, page.sites)
        if reason then return Linking.refuse(reason, text) end
        Desk.enter(id, text, name, depth, hop, page.url.id)
        new[#new + 1] = struct.pack(">I4I4I2B", page.place, at, depth, hop)
    end
    for _, page in ipairs(pages) do
        local url, target = page.url, page.target
        if target then
            local family, combines = Linking.family(target[4], 1)
            enter(page, Linking.TARGET, target[1], target[2], target[3], family, combines, url.depth, url.hop + 1)
        end
        for _, at in ipairs(page.unknown) do
            local family, combines = Linking.family(page.families, at)
            enter(page, at - 1, page.ids[at], page.texts[at], page.names[at], family, combines, url.depth + 1, 0)
        end
    end
    return table.concat(new)
end

-- The family at a place, if there is one, and whether its URL combines parameters. Most pages have no link with a family: then
-- none is sent.
function Linking.family(families, at)
    if families == "" then return nil end
    local kind, family = struct.unpack("Bc" .. Linking.FAMILY_BYTES, families, (at - 1) * (Linking.FAMILY_BYTES + 1) + 1)
    if kind == Family.NONE then return nil end
    return family, kind == Family.COMBINES
end

-- Which links of each page are unknown, by their places. Most pages have hardly any: the words of the others are never unpacked.
function Linking.look_up(pages)
    local all = {}
    for _, page in ipairs(pages) do
        page.ids = Desk.split_ids(page.link_ids)
        for _, id in ipairs(page.ids) do all[#all + 1] = id end
        if page.target then all[#all + 1] = page.target[1] end
    end
    Shelf.fetch(Desk.url_rows, all)
    local rows = Desk.url_rows.rows
    for _, page in ipairs(pages) do
        page.unknown = {}
        for at, id in ipairs(page.ids) do
            if not rows[id] then table.insert(page.unknown, at) end
        end
        if #page.unknown > 0 then page.texts, page.names = cmsgpack.unpack(page.words) end
    end
end

function Linking.fetch_domains(pages)
    for _, page in ipairs(pages) do
        local names = {}
        for _, at in ipairs(page.unknown) do names[#names + 1] = page.names[at] end
        if page.target then names[#names + 1] = page.target[3] end
        Desk.fetch_domains(names, page.sites)
    end
end

-- For the rank: whole ids, since it tells priorities of URLs that it knows from links alone.
function Linking.note_outlinks(url, link_ids)
    Desk.append("RPUSH", "outlinks", url.id .. link_ids)
end

-- A bounded sample of links that were never added, so that "why not?" has an answer; and a count for each reason. Each is there
-- once: what a site has on every page would drive the rest out.
function Linking.note_refused(refused)
    for _, one in ipairs(refused) do
        local reason, count, example = one[1], one[2], one[3]
        Desk.count("refused", reason, count)
        local refusal = struct.pack(">I4c0", #reason, reason) .. example
        Desk.append("ZADD", "refusals", refusal, Linking.REFUSALS_KEPT)
    end
end

-- Past a budget. One of them to show is enough for a verb.
function Linking.refuse(reason, url)
    if Linking.shown[reason] then
        Desk.count("refused", reason, 1)
    else
        Linking.shown[reason] = true
        Linking.note_refused({ { reason, 1, url } })
    end
end
