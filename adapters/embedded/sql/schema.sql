-- The ledger of one crawl. States are those of gossamer/states.py: 0 WAITING, 1 PARKED, 2 ROUTED, 3 FETCHING, 4 CLOSED.
-- In one transaction: otherwise each table and index would be made durable alone. Two processes may do it at the same time.
BEGIN;

-- The crawl itself: one row, a document (verbs/desk.py, Crawl), rewritten with each group that changes it.
CREATE TABLE IF NOT EXISTS crawl (
    key   INTEGER PRIMARY KEY CHECK (key = 1),
    doc   BLOB NOT NULL
);

-- `n` counts up, so it is also the order in which URLs became known; the wide row is appended and the random id lies
-- in a narrow index: looking for 60 known links touches that index alone.
CREATE TABLE IF NOT EXISTS url (
    n          INTEGER PRIMARY KEY,
    id         BLOB NOT NULL UNIQUE,
    url        TEXT NOT NULL,
    domain     INTEGER NOT NULL REFERENCES domain (n),
    depth      INTEGER NOT NULL,
    hop        INTEGER NOT NULL,
    parent     BLOB,
    state      INTEGER NOT NULL,
    worker     INTEGER,
    priority   INTEGER NOT NULL,
    suspect    INTEGER NOT NULL DEFAULT 0,  -- the epoch whose lapse made it one
    deaths     INTEGER NOT NULL DEFAULT 0,
    pardoned   INTEGER NOT NULL DEFAULT 0,  -- its worker came back once, and took the suspicion back
    deferrals  INTEGER NOT NULL DEFAULT 0,
    added_at   REAL NOT NULL,
    changed_at REAL NOT NULL,
    offered_at REAL NOT NULL DEFAULT 0,     -- when `waiting` last handed it out
    outcome    TEXT,
    reason     TEXT,
    facts      BLOB
);
-- Partial, so that each costs only while a URL is in its state.
CREATE INDEX IF NOT EXISTS waiting_best ON url (priority, n) WHERE state = 0;
CREATE INDEX IF NOT EXISTS waiting_oldest ON url (n) WHERE state = 0;
CREATE INDEX IF NOT EXISTS parked_best ON url (domain, priority, n) WHERE state = 1;
CREATE INDEX IF NOT EXISTS parked_worst ON url (priority, n) WHERE state = 1;
CREATE INDEX IF NOT EXISTS held ON url (worker) WHERE state IN (2, 3);
CREATE INDEX IF NOT EXISTS suspects ON url (suspect) WHERE suspect <> 0;
CREATE INDEX IF NOT EXISTS poisoned ON url (changed_at) WHERE outcome = 'poison';

CREATE TABLE IF NOT EXISTS domain (
    n           INTEGER PRIMARY KEY,
    name        TEXT NOT NULL UNIQUE,
    owner       INTEGER,
    owner_until REAL NOT NULL,
    out         INTEGER NOT NULL,           -- ROUTED and FETCHING
    parked      INTEGER NOT NULL,
    busy        INTEGER,                    -- url.n of the request in flight
    next_at     REAL NOT NULL,
    delay_s     REAL NOT NULL,
    not_before  REAL NOT NULL,
    due_at      REAL,
    failures    INTEGER NOT NULL,
    rests       INTEGER NOT NULL,
    stored      INTEGER NOT NULL,
    closed      TEXT,                       -- the outcome with which it was given up
    site        TEXT NOT NULL,              -- its registered domain
    begun       INTEGER NOT NULL            -- requests for pages
);
CREATE INDEX IF NOT EXISTS due ON domain (due_at, name) WHERE due_at IS NOT NULL;
CREATE INDEX IF NOT EXISTS out ON domain (n) WHERE out > 0;

-- Registered domains, for the budgets.
CREATE TABLE IF NOT EXISTS site (
    name  TEXT PRIMARY KEY,
    hosts INTEGER NOT NULL,
    begun INTEGER NOT NULL,                 -- requests for pages, at all of its hosts
    own   INTEGER NOT NULL                  -- a seed's
) WITHOUT ROWID;

-- Hosts that are not a domain themselves, because the unit of politeness is the registered one.
CREATE TABLE IF NOT EXISTS host (
    name TEXT PRIMARY KEY
) WITHOUT ROWID;

-- How many URLs there are of one path that has queries: with them, and the one without.
CREATE TABLE IF NOT EXISTS family (
    key  BLOB PRIMARY KEY,
    urls INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS worker (
    id          INTEGER PRIMARY KEY,
    epoch       INTEGER NOT NULL,
    process     TEXT NOT NULL,
    lease_until REAL NOT NULL,
    load        INTEGER NOT NULL,           -- ROUTED and FETCHING
    fetching    INTEGER NOT NULL,
    knocking    INTEGER NOT NULL,           -- requests in flight for ROUTED URLs: robots.txt
    alone       INTEGER NOT NULL            -- suspects that are FETCHING: 0 or 1
);

-- The content index. An entry is there while its URL is FETCHING, and stays if the page is stored.
-- In the order of their coming, since they are wide: among one another they would each be written on a page of their own.
CREATE TABLE IF NOT EXISTS content (
    place     INTEGER PRIMARY KEY,
    n         INTEGER NOT NULL UNIQUE REFERENCES url (n),
    exact     BLOB NOT NULL,
    signature BLOB NOT NULL,
    bands     TEXT NOT NULL                 -- the keys, that of the whole page first, as a JSON list (base64)
);
CREATE TABLE IF NOT EXISTS band (
    key TEXT NOT NULL,                      -- as in that list
    n   INTEGER NOT NULL REFERENCES content (n),
    PRIMARY KEY (key, n)
) WITHOUT ROWID;
-- The last content entry whose bands are in `band`: one row, or none.
CREATE TABLE IF NOT EXISTS filed (
    key   INTEGER PRIMARY KEY CHECK (key = 1),
    place INTEGER NOT NULL
);

CREATE TABLE IF NOT EXISTS outlinks (
    place INTEGER PRIMARY KEY,              -- the order in which pages were stored
    n     INTEGER NOT NULL REFERENCES url (n),
    links BLOB NOT NULL                     -- their ids, one behind another
);

-- The stored pages.
CREATE TABLE IF NOT EXISTS page (
    place INTEGER PRIMARY KEY,              -- the order in which they were stored
    n     INTEGER NOT NULL REFERENCES url (n)
);

-- Hosts of seeds, and those that seeds redirect to.
CREATE TABLE IF NOT EXISTS scope (
    host TEXT PRIMARY KEY
) WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS robots (
    origin  TEXT PRIMARY KEY,
    text    TEXT,
    verdict TEXT NOT NULL,
    until   REAL NOT NULL
);

-- Priorities that somebody outside gave to domains.
CREATE TABLE IF NOT EXISTS rank (
    domain   TEXT PRIMARY KEY,
    priority INTEGER NOT NULL,
    until    REAL NOT NULL
) WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS lease (
    name   TEXT PRIMARY KEY,
    holder TEXT NOT NULL,
    until  REAL NOT NULL
);

-- What workers tell whoever watches: one text for each seat.
CREATE TABLE IF NOT EXISTS note (
    name TEXT PRIMARY KEY,
    text TEXT NOT NULL
) WITHOUT ROWID;

-- A bounded sample of links that were never added, so that "why not?" has an answer.
CREATE TABLE IF NOT EXISTS refusal (
    place  INTEGER PRIMARY KEY,
    reason TEXT NOT NULL,
    url    TEXT NOT NULL,
    UNIQUE (reason, url)                    -- what a site has on every page would drive the rest out
);

PRAGMA user_version = 1;                    -- SCHEMA in ledger.py

COMMIT;
