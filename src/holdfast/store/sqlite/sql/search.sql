-- The full-text index, derived from the journals. Rebuilt if it is missing, damaged or from another database.
CREATE TABLE IF NOT EXISTS progress (row INTEGER NOT NULL, hash BLOB NOT NULL);
CREATE VIRTUAL TABLE IF NOT EXISTS passage USING fts5 (
    text, session UNINDEXED, seq UNINDEXED, turn UNINDEXED, at_ms UNINDEXED,
    tokenize = "unicode61 remove_diacritics 2"
);
