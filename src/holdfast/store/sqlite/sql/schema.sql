-- The truth. A row is written once and never changed. `row` grows over all sessions: it is the order in which things
-- happened, whatever the clock said. Every row names its session in full, so that one found alone can be put back.
CREATE TABLE IF NOT EXISTS event (
    row     INTEGER PRIMARY KEY,
    session TEXT    NOT NULL,
    seq     INTEGER NOT NULL,
    at_ms   INTEGER NOT NULL,
    hash    BLOB    NOT NULL,
    body    BLOB    NOT NULL
);

-- No two events in one place: what a writer without a lease could do at worst is fail.
CREATE UNIQUE INDEX IF NOT EXISTS event_place ON event (session, seq);

-- Derived from `event`: one line for each session. `rank` is the row of its last activity.
CREATE TABLE IF NOT EXISTS session (
    id         TEXT PRIMARY KEY,
    name       TEXT UNIQUE,
    folder     TEXT    NOT NULL,
    rank       INTEGER NOT NULL,
    parent     TEXT,
    parent_seq INTEGER,
    tally      BLOB    NOT NULL
) WITHOUT ROWID;

-- The list, newest first, is read from here; `--continue` reads the first of a folder.
CREATE INDEX IF NOT EXISTS session_rank ON session (rank);
CREATE INDEX IF NOT EXISTS session_folder ON session (folder, rank);

-- A parent that is deleted keeps what its forks stand on.
CREATE INDEX IF NOT EXISTS session_parent ON session (parent) WHERE parent IS NOT NULL;

-- Who writes. The number only ever grows; a row without a holder is a lease given back.
CREATE TABLE IF NOT EXISTS lease (
    session  TEXT PRIMARY KEY,
    fence    INTEGER NOT NULL,
    instance TEXT,
    pid      INTEGER,
    host     TEXT,
    since_ms INTEGER
) WITHOUT ROWID;

-- Contents that events name; NULL content lies in a file of its own. One that was put again lately may be about to be
-- mentioned, so that it is not swept away.
CREATE TABLE IF NOT EXISTS blob (
    digest  BLOB PRIMARY KEY,
    size    INTEGER NOT NULL,
    content BLOB,
    puts    INTEGER NOT NULL DEFAULT 1,
    put_ms  INTEGER NOT NULL DEFAULT 0
);

-- What is gone on purpose: so that a missing session can be told from a lost one. `kept_seq` counts the events that stay
-- because forks stand on them.
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
