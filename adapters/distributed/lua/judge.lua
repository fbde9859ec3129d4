-- judge.lua: is a page that says this stored already? If not, it is entered under this id in the same step.
--
-- KEYS[1]  record   gossamer:{<crawl>}:crawl; the other keys of the crawl begin as it does
-- ARGV[1]  now      seconds since 1970, for tests; empty: the server's own time
-- ARGV[2]  worker
-- ARGV[3]  epoch    the seat that the caller has
-- ARGV[4]  contents msgpack: [id, exact, signature, bands] of each
-- Uses     desk, content
-- Returns  for each a code of Judged, the similarity of its twin and the twin's id, 25 bytes
-- In Lua because of two workers with the same page one must be told that it is fresh.
local record, now, worker, epoch, contents = KEYS[1], ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), cmsgpack.unpack(ARGV[4])
local NO_ID = string.rep("\0", ID_BYTES)
Desk.open(record, now)
Desk.seated(worker, epoch)
Content.fetch(contents)

local function judge(id, exact, signature, bands)
    local url = Desk.url(id)
    if not url or url.state ~= FETCHING or url.worker ~= worker then return Judged.CLOSED end
    return Content.judge(url, exact, signature, bands)
end

local answers = {}
for at, content in ipairs(contents) do
    local code, twin, similarity = judge(unpack(content, 1, 4))
    answers[at] = struct.pack(">Bdc16", code, similarity or 0, twin or NO_ID)
end
if Content.changed() then Desk.write_back() end
return table.concat(answers)
