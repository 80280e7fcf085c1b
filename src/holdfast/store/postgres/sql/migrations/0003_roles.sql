-- What a process does with the store, in its own words: an operator sees it.
ALTER TABLE worker ADD COLUMN role text NOT NULL DEFAULT '';
