-- The journals. A row is written once and never changed. `row` increases across all sessions: it is the order of events,
-- whatever the clock said. Every row has its full session id, so that salvage can restore a row that it finds alone.
CREATE TABLE IF NOT EXISTS event (
    row     INTEGER PRIMARY KEY,
    session TEXT    NOT NULL,
    seq     INTEGER NOT NULL,
    at_ms   INTEGER NOT NULL,
    hash    BLOB    NOT NULL,
    body    BLOB    NOT NULL
);

-- No two events have the same position, so a writer without a lease fails.
CREATE UNIQUE INDEX IF NOT EXISTS event_place ON event (session, seq);

-- The session index, derived from `event`: one row per session. `rank` is the row of its last activity.
CREATE TABLE IF NOT EXISTS session (
    id         TEXT PRIMARY KEY,
    name       TEXT UNIQUE,
    folder     TEXT    NOT NULL,
    rank       INTEGER NOT NULL,
    parent     TEXT,
    parent_seq INTEGER,
    tally      BLOB    NOT NULL
) WITHOUT ROWID;

-- For the list, newest first, and for `--continue`, which needs the newest session of a folder.
CREATE INDEX IF NOT EXISTS session_rank ON session (rank);
CREATE INDEX IF NOT EXISTS session_folder ON session (folder, rank);

-- For the sessions that wait for a person, by the only field of a summary that reads `"activity":"waiting"`. Text that someone
-- chose cannot contain it, because JSON escapes its quotes.
CREATE INDEX IF NOT EXISTS session_waiting ON session (rank)
WHERE instr(tally, x'226163746976697479223a2277616974696e6722') > 0;

-- For the deletion of a parent, which keeps the events that its forks share.
CREATE INDEX IF NOT EXISTS session_parent ON session (parent) WHERE parent IS NOT NULL;

-- The leases. `fence` only increases; a row without an instance is a released lease.
CREATE TABLE IF NOT EXISTS lease (
    session  TEXT PRIMARY KEY,
    fence    INTEGER NOT NULL,
    instance TEXT,
    pid      INTEGER,
    host     TEXT,
    since_ms INTEGER
) WITHOUT ROWID;

-- What each session of a tree has spent and reserved; `tree` is the first session. A tree without rows gets them from the
-- journals. `amounts` is JSON.
CREATE TABLE IF NOT EXISTS share (
    tree    TEXT NOT NULL,
    session TEXT NOT NULL,
    amounts BLOB NOT NULL,
    PRIMARY KEY (tree, session)
) WITHOUT ROWID;

-- The blobs that events refer to; NULL content is in a file. A blob that was recently stored again is not swept, because
-- its event may be about to be written.
CREATE TABLE IF NOT EXISTS blob (
    digest  BLOB PRIMARY KEY,
    size    INTEGER NOT NULL,
    content BLOB,
    puts    INTEGER NOT NULL DEFAULT 1,
    put_ms  INTEGER NOT NULL DEFAULT 0
);

-- Deleted sessions, to distinguish them from lost ones. `kept_seq` is the last event that stays because a fork shares it.
CREATE TABLE IF NOT EXISTS tombstone (
    session    TEXT PRIMARY KEY,
    name       TEXT,
    deleted_ms INTEGER NOT NULL,
    reason     TEXT    NOT NULL,
    events     INTEGER NOT NULL,
    last_hash  BLOB    NOT NULL,
    kept_seq   INTEGER NOT NULL DEFAULT 0,
    parent     TEXT,
    parent_seq INTEGER
);
