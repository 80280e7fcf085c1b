-- name: append_event
-- The only statement that adds to the truth.
INSERT INTO event (session, seq, at_ms, hash, body) VALUES (?, ?, ?, ?, ?);

-- name: salvage_event
-- With the number it had, so that the order in which things happened stays.
INSERT INTO event (row, session, seq, at_ms, hash, body) VALUES (?, ?, ?, ?, ?, ?);

-- name: read_events
-- One session's own rows between two places, in order.
SELECT seq, at_ms, hash, body FROM event WHERE session = ? AND seq > ? AND seq <= ? ORDER BY seq;

-- name: inspect_events
-- The same, typed, whatever somebody put there behind our back; and whether it was of these types.
SELECT CAST(seq AS INTEGER), ifnull(CAST(at_ms AS INTEGER), 0), ifnull(CAST(hash AS BLOB), x''), ifnull(CAST(body AS BLOB), x''),
    typeof(seq) || typeof(at_ms) || typeof(hash) || typeof(body) = 'integerintegerblobblob'
FROM event WHERE session = ? AND seq > ? AND seq <= ? ORDER BY seq;

-- name: added_events
-- Rows of a session where it can have none; the second value is where its own part begins.
SELECT CAST(seq AS INTEGER) FROM event WHERE session = ? AND (seq <= ? OR typeof(seq) NOT IN ('integer', 'real'));

-- name: event_hash
-- The hash that a fork's first event builds on.
SELECT ifnull(CAST(hash AS BLOB), x'') FROM event WHERE session = ? AND seq = ?;

-- name: event_hashes
-- What is known of a session that comes from elsewhere, up to a place.
SELECT seq, hash FROM event WHERE session = ? AND seq <= ?;

-- name: last_event
-- Where a journal ends.
SELECT seq, ifnull(CAST(hash AS BLOB), x'') FROM event WHERE session = ? ORDER BY seq DESC LIMIT 1;

-- name: rank_of
-- The place of an event among those of all sessions.
SELECT row FROM event WHERE session = ? AND seq = ?;

-- name: claim_session
-- Fails when the id or the name is taken: that is how both are claimed.
INSERT INTO session (id, name, folder, rank, parent, parent_seq, tally) VALUES (?, ?, ?, ?, ?, ?, ?);

-- name: is_taken
-- An id is taken by a session, and by a deleted one that forks still stand on.
SELECT 1 FROM session WHERE id = ?1 UNION ALL SELECT 1 FROM tombstone WHERE session = ?1 AND kept_seq > 0;

-- name: update_session
-- Once for each session of a group commit, however many events it got. The last value is the event that moves it up.
UPDATE session SET name = ?2, folder = ?3, tally = ?4,
    rank = coalesce((SELECT row FROM event WHERE session = ?1 AND seq = ?5), rank)
WHERE id = ?1;

-- name: note_tally
-- The cheapest: one page, and no index.
UPDATE session SET tally = ?2 WHERE id = ?1;

-- name: note_newest
-- The same for one that is the first of the list already.
UPDATE session SET tally = ?2 WHERE id = ?1 AND rank = (SELECT max(rank) FROM session);

-- name: raise_session
-- The same, and to the top of the list. The last value is the event that moves it up.
UPDATE session SET tally = ?2, rank = coalesce((SELECT row FROM event WHERE session = ?1 AND seq = ?3), rank)
WHERE id = ?1;

-- name: find_session
-- A session's line with its place in the list.
SELECT tally, rank, parent, parent_seq FROM session WHERE id = ?;

-- name: has_events
-- Whether a session that the list does not have is there all the same.
SELECT 1 FROM event WHERE session = ?1
AND NOT EXISTS (SELECT 1 FROM tombstone WHERE session = ?1 AND kept_seq > 0) LIMIT 1;

-- name: parent_of
-- The next step up; a deleted parent is found by its tombstone.
SELECT parent, parent_seq FROM session WHERE id = ?1
UNION ALL
SELECT parent, parent_seq FROM tombstone WHERE session = ?1 AND kept_seq > 0;

-- name: list_sessions
-- Newest activity first; -1 is no limit.
SELECT id, tally FROM session ORDER BY rank DESC LIMIT ?;

-- name: list_folder
-- The same within one folder.
SELECT id, tally FROM session WHERE folder = ? ORDER BY rank DESC LIMIT ?;

-- name: session_named
-- Names are unique, so there is one or none.
SELECT id FROM session WHERE name = ?;

-- name: sessions_beginning
-- A few are enough to say that there are several. The second value is the prefix with the highest character behind it.
SELECT id FROM session WHERE id >= ? AND id < ? ORDER BY id LIMIT 6;

-- name: lease_of
-- Who holds a session, and with which number.
SELECT fence, instance, pid, host, since_ms FROM lease WHERE session = ?;

-- name: grant_lease
-- The number grows with every grant, so an old holder's number never fits again.
INSERT INTO lease (session, fence, instance, pid, host, since_ms) VALUES (?1, 1, ?2, ?3, ?4, ?5)
ON CONFLICT (session) DO UPDATE SET fence = fence + 1, instance = ?2, pid = ?3, host = ?4, since_ms = ?5
RETURNING fence;

-- name: fence_of
-- Asked in the transaction of every append.
SELECT fence FROM lease WHERE session = ? AND instance = ?;

-- name: release_lease
-- Only by the one who has it.
UPDATE lease SET instance = NULL WHERE session = ? AND fence = ? AND instance = ?;

-- name: put_blob
-- The same content twice is the same blob.
INSERT INTO blob (digest, size, content, put_ms) VALUES (?, ?, ?, ?)
ON CONFLICT (digest) DO UPDATE SET puts = puts + 1, put_ms = excluded.put_ms RETURNING content IS NULL;

-- name: get_blob
-- NULL content lies in a file.
SELECT content FROM blob WHERE digest = ?;

-- name: forks_of
-- How far up others stand on this session.
SELECT max(parent_seq) FROM (
    SELECT parent_seq FROM session WHERE parent = ?1
    UNION ALL
    SELECT parent_seq FROM tombstone WHERE parent = ?1 AND kept_seq > 0
);

-- name: delete_events
-- All above what forks stand on.
DELETE FROM event WHERE session = ? AND seq > ?;

-- name: delete_session
DELETE FROM session WHERE id = ?;

-- name: delete_lease
DELETE FROM lease WHERE session = ?;

-- name: bury
-- The same id may be used and deleted again.
INSERT OR REPLACE INTO tombstone (session, name, deleted_ms, reason, events, last_hash, kept_seq, parent, parent_seq)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: tombstone_of
SELECT kept_seq, parent FROM tombstone WHERE session = ?;

-- name: buried_sessions
-- Whose id nobody has taken since.
SELECT session FROM tombstone WHERE session NOT IN (SELECT id FROM session);

-- name: removal_of
-- For whoever asks for a session that went on purpose, by its id or the name it had.
SELECT session, reason, ifnull(' on ' || date(deleted_ms / 1000, 'unixepoch'), '') FROM tombstone
WHERE (session = ?1 OR name = ?1) AND reason IN ('deleted', 'pruned') ORDER BY deleted_ms DESC LIMIT 1;

-- name: shrink_tombstone
-- When a fork goes, less of its parent has to stay.
UPDATE tombstone SET kept_seq = ? WHERE session = ?;

-- name: newest_event
-- What happened last, in any session.
SELECT session, seq FROM event ORDER BY row DESC LIMIT 1;

-- name: first_event
-- A journal begins with the event that names its parent.
SELECT ifnull(CAST(body AS BLOB), x'') FROM event WHERE session = ? ORDER BY seq LIMIT 1;

-- name: sessions_with_events
-- In the order in which they began, so that an older session keeps a name that two claim.
SELECT session FROM event GROUP BY session ORDER BY min(row);

-- name: kept_tombstones
-- Deleted sessions of which forks still need a part: they have events and no line.
SELECT session FROM tombstone WHERE kept_seq > 0;

-- name: claimed_events
-- How many events each session had when its line was last written; more than there are means that some were removed.
SELECT id, tally FROM session;

-- name: listed_sessions
-- By the order of the list, so that what cannot be reached by it is missed.
SELECT id FROM session ORDER BY rank;

-- name: rebuild_places
-- Where each event lies is derived from the events as well.
REINDEX event_place;

-- name: empty_index
DELETE FROM session;

-- name: events_since
-- What the search has not seen yet, a portion at a time.
SELECT row, session, seq, at_ms, hash, ifnull(CAST(body AS BLOB), x'') FROM event WHERE row > ? ORDER BY row LIMIT 2000;

-- name: hash_of_row
-- Whether the search was made of this very journal.
SELECT hash FROM event WHERE row = ?;

-- name: search_progress
SELECT row, hash FROM progress;

-- name: forget_progress
DELETE FROM progress;

-- name: note_progress
INSERT INTO progress (row, hash) VALUES (?, ?);

-- name: add_passage
INSERT INTO passage (text, session, seq, turn, at_ms) VALUES (?, ?, ?, ?, ?);

-- name: find_passages
-- Newest first; what stands around each word that was found is given.
SELECT session, seq, turn, at_ms, snippet(passage, 0, ?, ?, char(8230), 16)
FROM passage WHERE passage MATCH ? ORDER BY rowid DESC LIMIT ?;

-- name: owner_of
-- In which session an event can be looked at: its own or, where that was deleted, the newest that stands on it.
WITH owner (id) AS (
    SELECT ?1
    UNION
    SELECT session.id FROM owner JOIN session ON session.parent = owner.id AND session.parent_seq >= ?2
    WHERE NOT EXISTS (SELECT 1 FROM session WHERE id = ?1)
    UNION
    SELECT tombstone.session FROM owner JOIN tombstone ON tombstone.parent = owner.id AND tombstone.parent_seq >= ?2
    WHERE NOT EXISTS (SELECT 1 FROM session WHERE id = ?1)
)
SELECT id FROM session WHERE id IN owner ORDER BY rank DESC LIMIT 1;

-- name: bodies_above
-- What a deleted session mentions.
SELECT ifnull(CAST(body AS BLOB), x'') FROM event WHERE session = ? AND seq > ?;

-- name: all_bodies
SELECT ifnull(CAST(body AS BLOB), x'') FROM event;

-- name: drop_blob
-- Not one that somebody has just put again and not mentioned yet.
DELETE FROM blob WHERE digest = ? AND NOT (puts > 1 AND put_ms > ?) RETURNING content IS NULL;

-- name: settled_blobs
-- Contents that were put long enough ago for their event to be there.
SELECT lower(hex(digest)) FROM blob WHERE put_ms <= ?;
