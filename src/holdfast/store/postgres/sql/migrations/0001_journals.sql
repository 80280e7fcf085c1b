-- The processes that have the store open. A process that was not seen for a while is dead: its leases are free.
-- The database's clock decides, because the clocks of machines differ. Updated every second, so the page keeps room.
CREATE TABLE worker (
    id      text COLLATE "C" PRIMARY KEY,
    host    text        NOT NULL,
    pid     integer     NOT NULL,
    version text        NOT NULL,
    started timestamptz NOT NULL DEFAULT now(),
    seen    timestamptz NOT NULL DEFAULT now()
) WITH (fillfactor = 50);

-- The leases, which are the ends of the journals as well: an append locks one row, and that row is its fence.
-- `fence` only increases; a row without a worker is a released lease.
CREATE TABLE lease (
    session  text COLLATE "C" PRIMARY KEY,
    fence    bigint NOT NULL,
    worker   text COLLATE "C",
    since_ms bigint NOT NULL,
    seq      bigint NOT NULL,
    hash     bytea  NOT NULL
) WITH (fillfactor = 50);

-- The journals. A row is written once and never changed. `place` is the transaction that wrote it and `part` the position in
-- it: a reader that follows all sessions cannot use a counter, because numbers are not committed in their order. It reads up
-- to the oldest transaction that is still running.
CREATE TABLE event (
    session text COLLATE "C" NOT NULL,
    seq     bigint NOT NULL,
    at_ms   bigint NOT NULL,
    hash    bytea  NOT NULL,
    body    bytea  NOT NULL,
    place   bigint NOT NULL,
    part    integer NOT NULL,
    PRIMARY KEY (session, seq)
) WITH (autovacuum_vacuum_insert_scale_factor = 0.02);
CREATE INDEX event_place ON event (place, part);

-- What is added to the number of a transaction. In a database that was restored on another server, numbers start again.
CREATE TABLE place_offset (value bigint NOT NULL);
INSERT INTO place_offset VALUES (0);

-- The session list, derived from the journals. `rank` is the order of the last activity; `tally` is the summary.
CREATE SEQUENCE activity;
CREATE TABLE session (
    id         text COLLATE "C" PRIMARY KEY,
    name       text COLLATE "C" UNIQUE,
    folder     text COLLATE "C" NOT NULL,
    activity   text COLLATE "C" NOT NULL,
    rank       bigint NOT NULL,
    parent     text COLLATE "C",
    parent_seq bigint,
    tally      bytea  NOT NULL
) WITH (fillfactor = 80);
CREATE INDEX session_rank ON session (rank);
CREATE INDEX session_folder ON session (folder, rank);
CREATE INDEX session_activity ON session (activity, rank) WHERE activity <> 'ready';
CREATE INDEX session_parent ON session (parent) WHERE parent IS NOT NULL;

-- The blobs that events refer to. One whose content is NULL is in the object store.
CREATE TABLE blob (
    digest  bytea PRIMARY KEY,
    size    bigint NOT NULL,
    content bytea,
    puts    integer NOT NULL DEFAULT 1,
    put_ms  bigint  NOT NULL
);
ALTER TABLE blob ALTER COLUMN content SET STORAGE EXTERNAL;
CREATE INDEX blob_put ON blob (put_ms);

-- Deleted sessions, to distinguish them from lost ones. `kept_seq` is the last event that stays because a fork shares it.
CREATE TABLE tombstone (
    session    text COLLATE "C" PRIMARY KEY,
    name       text COLLATE "C",
    deleted_ms bigint NOT NULL,
    reason     text   NOT NULL,
    events     bigint NOT NULL,
    last_hash  bytea  NOT NULL,
    kept_seq   bigint NOT NULL,
    parent     text COLLATE "C",
    parent_seq bigint
);
CREATE INDEX tombstone_parent ON tombstone (parent) WHERE kept_seq > 0;

-- The full-text index, derived from the journals and updated when somebody searches. `horizon` is the oldest transaction
-- that may still have been running then; `searched` is how far each session was read.
CREATE TABLE passage (
    id      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    session text COLLATE "C" NOT NULL,
    seq     bigint NOT NULL,
    turn    bigint NOT NULL,
    at_ms   bigint NOT NULL,
    text    text   NOT NULL,
    words   tsvector NOT NULL
);
CREATE INDEX passage_words ON passage USING gin (words);
CREATE INDEX passage_session ON passage (session, seq);
CREATE TABLE searched (session text COLLATE "C" PRIMARY KEY, seq bigint NOT NULL);
CREATE TABLE search_progress (horizon bigint NOT NULL);

-- What each session of a tree has spent and reserved; `tree` is the first session. A tree without rows gets them from the
-- journals. `amounts` is JSON. `version` changes with every change of a tree; it starts at random, so that a tree of a new
-- session with an old id is not taken for the old one. `change` names the last change, for a writer whose answer was lost.
CREATE TABLE share_tree (
    tree    text COLLATE "C" PRIMARY KEY,
    version bigint NOT NULL DEFAULT floor(random() * 1e15),
    change  text COLLATE "C" NOT NULL DEFAULT ''
) WITH (fillfactor = 50);
CREATE TABLE share (
    tree    text COLLATE "C" NOT NULL,
    session text COLLATE "C" NOT NULL,
    amounts bytea NOT NULL,
    PRIMARY KEY (tree, session)
) WITH (fillfactor = 50);
