-- Small documents that all machines share, such as the saved grants and the pins of MCP tools. A process writes what it computed
-- from a version only if that is still the newest.
CREATE TABLE document (
    name    text COLLATE "C" PRIMARY KEY,
    version bigint NOT NULL,
    content bytea  NOT NULL
);

-- The id of the key that a process signs snapshots with. It says nothing about the key, only which machines have the same.
ALTER TABLE worker ADD COLUMN key text NOT NULL DEFAULT '';
