-- What sessions used, derived from the journals in a file of its own. Rebuilt if it is missing, damaged or from another database.
-- `progress` is the last event that is folded in, `place` is what the next event of a session counts for, and `asked` are the
-- questions that are still open.
CREATE TABLE IF NOT EXISTS progress (row INTEGER NOT NULL, hash BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS place (session TEXT PRIMARY KEY, model TEXT NOT NULL, folder TEXT NOT NULL, pair TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS asked (
    session TEXT NOT NULL, escalation TEXT NOT NULL, at_ms INTEGER NOT NULL, PRIMARY KEY (session, escalation)
) WITHOUT ROWID;

-- By session, so that a deleted one can be taken out of the totals, and in total, so that a page reads a few rows a day.
CREATE TABLE IF NOT EXISTS part (
    session TEXT NOT NULL, day TEXT NOT NULL, model TEXT NOT NULL, folder TEXT NOT NULL, pair TEXT NOT NULL,
    nano_usd INTEGER NOT NULL, unpriced INTEGER NOT NULL, input_tokens INTEGER NOT NULL, output_tokens INTEGER NOT NULL,
    cached_tokens INTEGER NOT NULL, requests INTEGER NOT NULL, calls INTEGER NOT NULL, refused INTEGER NOT NULL,
    commands INTEGER NOT NULL, prompts INTEGER NOT NULL, answered INTEGER NOT NULL, answer_ms INTEGER NOT NULL,
    PRIMARY KEY (session, day, model, folder, pair)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS total (
    day TEXT NOT NULL, model TEXT NOT NULL, folder TEXT NOT NULL, pair TEXT NOT NULL,
    nano_usd INTEGER NOT NULL, unpriced INTEGER NOT NULL, input_tokens INTEGER NOT NULL, output_tokens INTEGER NOT NULL,
    cached_tokens INTEGER NOT NULL, requests INTEGER NOT NULL, calls INTEGER NOT NULL, refused INTEGER NOT NULL,
    commands INTEGER NOT NULL, prompts INTEGER NOT NULL, answered INTEGER NOT NULL, answer_ms INTEGER NOT NULL,
    PRIMARY KEY (day, model, folder, pair)
) WITHOUT ROWID;
