-- name: append_event
-- The only statement that adds events.
INSERT INTO event (session, seq, at_ms, hash, body) VALUES (?, ?, ?, ?, ?);

-- name: salvage_event
-- Keeps the row number, so that the order of events stays the same.
INSERT INTO event (row, session, seq, at_ms, hash, body) VALUES (?, ?, ?, ?, ?, ?);

-- name: read_events
-- One session's own rows between two positions, in order.
SELECT seq, at_ms, hash, body FROM event WHERE session = ? AND seq > ? AND seq <= ? ORDER BY seq;

-- name: inspect_events
-- The same with forced types, whatever another program stored, and whether the types were right.
SELECT CAST(seq AS INTEGER), ifnull(CAST(at_ms AS INTEGER), 0), ifnull(CAST(hash AS BLOB), x''), ifnull(CAST(body AS BLOB), x''),
    typeof(seq) || typeof(at_ms) || typeof(hash) || typeof(body) = 'integerintegerblobblob'
FROM event WHERE session = ? AND seq > ? AND seq <= ? ORDER BY seq;

-- name: added_events
-- Rows of a session at impossible positions; the second value is where its own part begins.
SELECT CAST(seq AS INTEGER) FROM event WHERE session = ? AND (seq <= ? OR typeof(seq) NOT IN ('integer', 'real'));

-- name: event_hash
-- The hash that a fork's first event builds on.
SELECT ifnull(CAST(hash AS BLOB), x'') FROM event WHERE session = ? AND seq = ?;

-- name: event_hashes
-- The known events of a session that is being imported, up to a position.
SELECT seq, hash FROM event WHERE session = ? AND seq <= ?;

-- name: last_event
-- The end of a journal.
SELECT seq, ifnull(CAST(hash AS BLOB), x'') FROM event WHERE session = ? ORDER BY seq DESC LIMIT 1;

-- name: rank_of
-- The position of an event among those of all sessions.
SELECT row FROM event WHERE session = ? AND seq = ?;

-- name: insert_session
-- Fails if the id or the name is taken, which makes both unique.
INSERT INTO session (id, name, folder, rank, parent, parent_seq, tally) VALUES (?, ?, ?, ?, ?, ?, ?);

-- name: is_taken
-- An id is taken by a session, or by a deleted one whose events forks still share.
SELECT 1 FROM session WHERE id = ?1 UNION ALL SELECT 1 FROM tombstone WHERE session = ?1 AND kept_seq > 0;

-- name: update_session
-- Once per session and group commit, for any number of events. The last value is the event that counts as activity.
UPDATE session SET name = ?2, folder = ?3, tally = ?4,
    rank = coalesce((SELECT row FROM event WHERE session = ?1 AND seq = ?5), rank)
WHERE id = ?1;

-- name: update_summary
-- The cheapest update: one page and no index.
UPDATE session SET tally = ?2 WHERE id = ?1;

-- name: update_newest_summary
-- The same for the session that is already at the top of the list.
UPDATE session SET tally = ?2 WHERE id = ?1 AND rank = (SELECT max(rank) FROM session);

-- name: move_to_top
-- The same, and moves the session to the top of the list. The last value is the event that counts as activity.
UPDATE session SET tally = ?2, rank = coalesce((SELECT row FROM event WHERE session = ?1 AND seq = ?3), rank)
WHERE id = ?1;

-- name: find_session
-- A session's summary and its position in the list.
SELECT tally, rank, parent, parent_seq FROM session WHERE id = ?;

-- name: has_events
-- Whether a session that is not in the list has events.
SELECT 1 FROM event WHERE session = ?1
AND NOT EXISTS (SELECT 1 FROM tombstone WHERE session = ?1 AND kept_seq > 0) LIMIT 1;

-- name: parent_of
-- The parent of a session, or of a deleted one by its tombstone.
SELECT parent, parent_seq FROM session WHERE id = ?1
UNION ALL
SELECT parent, parent_seq FROM tombstone WHERE session = ?1 AND kept_seq > 0;

-- name: list_sessions
-- Newest activity first; -1 means no limit.
SELECT id, tally FROM session ORDER BY rank DESC LIMIT ?;

-- name: list_folder
-- The same within one folder.
SELECT id, tally FROM session WHERE folder = ? ORDER BY rank DESC LIMIT ?;

-- name: page_sessions
-- The same, behind a place in the list; the fourth value is what the summary must contain, or an empty blob.
SELECT id, tally, rank FROM session WHERE (rank, id) < (?1, ?2) AND (?3 IS NULL OR folder = ?3) AND instr(tally, ?4) > 0
ORDER BY rank DESC, id DESC LIMIT ?5;

-- name: waiting_sessions
-- By the partial index, so that it costs nothing if none waits.
SELECT id, tally FROM session WHERE instr(tally, x'226163746976697479223a2277616974696e6722') > 0 ORDER BY rank DESC;

-- name: events_at
-- Events at some positions, given as JSON pairs of a session and a number, each with the hash before it.
SELECT event.session, event.seq, event.at_ms, event.hash, event.body, ifnull(previous.hash, x'')
FROM json_each(?) AS wanted
JOIN event ON event.session = json_extract(wanted.value, '$[0]') AND event.seq = json_extract(wanted.value, '$[1]')
LEFT JOIN event AS previous ON previous.session = event.session AND previous.seq = event.seq - 1;

-- name: session_named
-- Names are unique, so there is one or none.
SELECT id FROM session WHERE name = ?;

-- name: sessions_beginning
-- A few are enough to show that there are several. The second value is the prefix plus the highest character.
SELECT id FROM session WHERE id >= ? AND id < ? ORDER BY id LIMIT 6;

-- name: sessions_ending
-- By the short id that lists show, which is the random end of an id.
SELECT id FROM session WHERE id GLOB '*-' || ? ORDER BY id LIMIT 6;

-- name: lease_of
-- The holder of a session and its fencing number.
SELECT fence, instance, pid, host, since_ms FROM lease WHERE session = ?;

-- name: grant_lease
-- The number increases with every grant, so an old holder's number is never valid again.
INSERT INTO lease (session, fence, instance, pid, host, since_ms) VALUES (?1, 1, ?2, ?3, ?4, ?5)
ON CONFLICT (session) DO UPDATE SET fence = fence + 1, instance = ?2, pid = ?3, host = ?4, since_ms = ?5
RETURNING fence;

-- name: fence_of
-- Checked in the transaction of every append.
SELECT fence FROM lease WHERE session = ? AND instance = ?;

-- name: held_leases
-- How many sessions are open, or were when their process died.
SELECT count(*) FROM lease WHERE instance IS NOT NULL;

-- name: release_lease
-- Only by the holder.
UPDATE lease SET instance = NULL WHERE session = ? AND fence = ? AND instance = ?;

-- name: shares_of
-- The shares of a tree whose first session is still there.
SELECT session, amounts FROM share WHERE tree = ?1 AND EXISTS (SELECT 1 FROM session WHERE id = ?1);

-- name: trees
SELECT DISTINCT tree FROM share;

-- name: put_share
INSERT INTO share (tree, session, amounts) VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET amounts = excluded.amounts;

-- name: delete_shares
-- A tree whose first session is deleted has no limits.
DELETE FROM share WHERE tree = ?;

-- name: put_blob
-- Equal contents are one blob.
INSERT INTO blob (digest, size, content, put_ms) VALUES (?, ?, ?, ?)
ON CONFLICT (digest) DO UPDATE SET puts = puts + 1, put_ms = excluded.put_ms RETURNING content IS NULL;

-- name: get_blob
-- NULL content is in a file.
SELECT content FROM blob WHERE digest = ?;

-- name: forks_of
-- The last event that a fork of this session shares.
SELECT max(parent_seq) FROM (
    SELECT parent_seq FROM session WHERE parent = ?1
    UNION ALL
    SELECT parent_seq FROM tombstone WHERE parent = ?1 AND kept_seq > 0
);

-- name: delete_events
-- All events that no fork shares.
DELETE FROM event WHERE session = ? AND seq > ?;

-- name: delete_session
DELETE FROM session WHERE id = ?;

-- name: delete_lease
DELETE FROM lease WHERE session = ?;

-- name: write_tombstone
-- An id can be used and deleted again.
INSERT OR REPLACE INTO tombstone (session, name, deleted_ms, reason, events, last_hash, kept_seq, parent, parent_seq)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: tombstone_of
SELECT kept_seq, parent FROM tombstone WHERE session = ?;

-- name: deleted_sessions
-- Unless the id is in use again.
SELECT session FROM tombstone WHERE session NOT IN (SELECT id FROM session);

-- name: removal_of
-- Explains that a session was deleted, by its id or old name.
SELECT session, reason, ifnull(' on ' || date(deleted_ms / 1000, 'unixepoch'), '') FROM tombstone
WHERE (session = ?1 OR name = ?1) AND reason IN ('deleted', 'pruned') ORDER BY deleted_ms DESC LIMIT 1;

-- name: shrink_tombstone
-- When a fork is deleted, fewer events of its parent must stay.
UPDATE tombstone SET kept_seq = ? WHERE session = ?;

-- name: newest_event
-- The last event of all sessions.
SELECT session, seq FROM event ORDER BY row DESC LIMIT 1;

-- name: first_event
-- The first event of a journal names its parent.
SELECT ifnull(CAST(body AS BLOB), x'') FROM event WHERE session = ? ORDER BY seq LIMIT 1;

-- name: sessions_with_events
-- In order of creation, so that of two sessions with the same name the older one keeps it.
SELECT session FROM event GROUP BY session ORDER BY min(row);

-- name: kept_tombstones
-- Deleted sessions whose events forks share: they have events and no row.
SELECT session FROM tombstone WHERE kept_seq > 0;

-- name: list_summaries
-- The summaries count the events of each session; a higher count than there are rows means that events were lost.
SELECT id, tally FROM session;

-- name: listed_sessions
-- In list order, so that it uses the index and misses what the index has lost.
SELECT id FROM session ORDER BY rank;

-- name: reindex_events
-- The index of event positions is derived as well.
REINDEX event_place;

-- name: empty_index
DELETE FROM session;

-- name: events_since
-- Events that the search index does not include yet, in batches.
SELECT row, session, seq, at_ms, hash, ifnull(CAST(body AS BLOB), x'') FROM event WHERE row > ? ORDER BY row LIMIT 2000;

-- name: events_after
-- The same for the event stream, as many as are asked for.
SELECT row, session, seq, at_ms, ifnull(CAST(body AS BLOB), x'') FROM event WHERE row > ? ORDER BY row LIMIT ?;

-- name: last_row
SELECT ifnull(max(row), 0) FROM event;

-- name: hash_of_row
-- Whether the search index was built from this database.
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
-- Newest first, with the text around each match.
SELECT session, seq, turn, at_ms, snippet(passage, 0, ?, ?, char(8230), 16)
FROM passage WHERE passage MATCH ? ORDER BY rowid DESC LIMIT ?;

-- name: owner_of
-- The session that shows an event: its own or, if that was deleted, the newest fork that shares it.
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
-- The events that a deletion removes.
SELECT ifnull(CAST(body AS BLOB), x'') FROM event WHERE session = ? AND seq > ?;

-- name: all_bodies
SELECT ifnull(CAST(body AS BLOB), x'') FROM event;

-- name: drop_blob
-- Except a blob that was just stored again, because its event may not be written yet.
DELETE FROM blob WHERE digest = ? AND NOT (puts > 1 AND put_ms > ?) RETURNING content IS NULL;

-- name: settled_blobs
-- Blobs that are old enough for their event to exist.
SELECT lower(hex(digest)) FROM blob WHERE put_ms <= ?;

-- name: add_usage_part
INSERT INTO part VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT DO UPDATE SET
    nano_usd = nano_usd + excluded.nano_usd, unpriced = unpriced + excluded.unpriced,
    input_tokens = input_tokens + excluded.input_tokens, output_tokens = output_tokens + excluded.output_tokens,
    cached_tokens = cached_tokens + excluded.cached_tokens, requests = requests + excluded.requests,
    calls = calls + excluded.calls, refused = refused + excluded.refused,
    commands = commands + excluded.commands, prompts = prompts + excluded.prompts,
    answered = answered + excluded.answered, answer_ms = answer_ms + excluded.answer_ms;

-- name: add_usage_total
INSERT INTO total VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT DO UPDATE SET
    nano_usd = nano_usd + excluded.nano_usd, unpriced = unpriced + excluded.unpriced,
    input_tokens = input_tokens + excluded.input_tokens, output_tokens = output_tokens + excluded.output_tokens,
    cached_tokens = cached_tokens + excluded.cached_tokens, requests = requests + excluded.requests,
    calls = calls + excluded.calls, refused = refused + excluded.refused,
    commands = commands + excluded.commands, prompts = prompts + excluded.prompts,
    answered = answered + excluded.answered, answer_ms = answer_ms + excluded.answer_ms;

-- name: take_from_usage_total
-- What a deleted session used no longer counts.
INSERT INTO total SELECT day, model, folder, pair,
    -nano_usd, -unpriced, -input_tokens, -output_tokens, -cached_tokens, -requests,
    -calls, -refused, -commands, -prompts, -answered, -answer_ms
FROM part WHERE session = ?
ON CONFLICT DO UPDATE SET
    nano_usd = nano_usd + excluded.nano_usd, unpriced = unpriced + excluded.unpriced,
    input_tokens = input_tokens + excluded.input_tokens, output_tokens = output_tokens + excluded.output_tokens,
    cached_tokens = cached_tokens + excluded.cached_tokens, requests = requests + excluded.requests,
    calls = calls + excluded.calls, refused = refused + excluded.refused,
    commands = commands + excluded.commands, prompts = prompts + excluded.prompts,
    answered = answered + excluded.answered, answer_ms = answer_ms + excluded.answer_ms;

-- name: drop_empty_usage
DELETE FROM total WHERE NOT (requests OR calls OR refused OR commands OR prompts OR answered);

-- name: forget_usage_part
DELETE FROM part WHERE session = ?;

-- name: forget_usage_place
DELETE FROM place WHERE session = ?;

-- name: forget_usage_asked
DELETE FROM asked WHERE session = ?;

-- name: usage_totals
SELECT NULL, day, model, folder, pair,
    nano_usd, unpriced, input_tokens, output_tokens, cached_tokens, requests,
    calls, refused, commands, prompts, answered, answer_ms
FROM total WHERE day >= ? ORDER BY day, model, folder, pair;

-- name: usage_parts
SELECT session, day, model, folder, pair,
    nano_usd, unpriced, input_tokens, output_tokens, cached_tokens, requests,
    calls, refused, commands, prompts, answered, answer_ms
FROM part WHERE day >= ?1 AND (?2 IS NULL OR session = ?2) ORDER BY session, day, model, folder, pair;

-- name: usage_place
SELECT model, folder, pair FROM place WHERE session = ?;

-- name: put_usage_place
INSERT OR REPLACE INTO place VALUES (?, ?, ?, ?);

-- name: usage_asked
SELECT session, escalation, at_ms FROM asked;

-- name: put_usage_asked
INSERT OR REPLACE INTO asked VALUES (?, ?, ?);

-- name: settle_usage_asked
DELETE FROM asked WHERE session = ? AND escalation = ?;

-- name: is_listed
SELECT 1 FROM session WHERE id = ?;
