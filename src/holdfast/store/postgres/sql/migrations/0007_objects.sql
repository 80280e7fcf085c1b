-- What all machines must agree on: where large blobs are, and which engine carries the jobs.
CREATE TABLE setting (name text COLLATE "C" PRIMARY KEY, value text NOT NULL);

-- The blobs that an object mentions, so that nobody has to fetch it to find them.
ALTER TABLE blob ADD COLUMN mentions bytea[];
