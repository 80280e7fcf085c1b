-- name: append
-- One round trip for the appends of many sessions. The row lock of `held` is the fence: a plain SELECT would let a takeover
-- commit between the check and the insert. A session that is not returned has lost its lease; the others do not suffer.
WITH wanted AS (
    SELECT * FROM unnest($2::text[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bytea[], $7::bytea[], $8::boolean[],
        $9::text[]) AS w (session, fence, seq, upto, hash, tally, is_activity, activity)
), held AS (
    UPDATE lease SET seq = wanted.upto, hash = wanted.hash FROM wanted
    WHERE lease.session = wanted.session AND lease.worker = $1 AND lease.fence = wanted.fence AND lease.seq = wanted.seq
    RETURNING lease.session
), listed AS (
    UPDATE session SET tally = wanted.tally, activity = wanted.activity,
        rank = CASE WHEN wanted.is_activity THEN nextval('activity') ELSE session.rank END
    FROM wanted JOIN held USING (session) WHERE session.id = wanted.session
), recorded AS (
    INSERT INTO event (session, seq, at_ms, hash, body, place, part)
    SELECT e.session, e.seq, e.at_ms, e.hash, e.body,
        (SELECT value + pg_current_xact_id()::text::bigint FROM place_offset), e.part
    FROM unnest($10::text[], $11::bigint[], $12::bigint[], $13::bytea[], $14::bytea[]) WITH ORDINALITY
        AS e (session, seq, at_ms, hash, body, part)
    JOIN held USING (session)
)
SELECT session FROM held;

-- name: stored
-- A part of `append`, if there are blobs.
stored AS (
    INSERT INTO blob (digest, size, content, put_ms)
    SELECT DISTINCT ON (b.digest) b.digest, b.size, b.content, b.put_ms
    FROM unnest($15::text[], $16::bytea[], $17::bigint[], $18::bytea[], $19::bigint[])
        AS b (session, digest, size, content, put_ms)
    JOIN held USING (session)
    ON CONFLICT (tenant, digest) DO UPDATE SET puts = blob.puts + 1, put_ms = excluded.put_ms
);

-- name: written
-- After the answer to an append was lost: which of the last events are there, and what the leases say.
SELECT w.session, event.hash FROM unnest($1::text[], $2::bigint[]) AS w (session, seq)
JOIN event ON event.session = w.session AND event.seq = w.seq;

-- name: list_again
-- The columns of the session list that few appends change.
UPDATE session SET name = $2, folder = $3 WHERE id = $1;

-- name: lock_names
-- Names and ids share one set of references. The locks end with the transaction; equal order, so that nobody waits in a circle.
SELECT pg_advisory_xact_lock(7266331, number)
FROM (SELECT hashtext(current_setting('holdfast.tenant') || ' ' || word) AS number FROM unnest($1::text[]) AS w (word)) AS n
ORDER BY number;

-- name: is_taken
-- An id is taken by a session, or by a deleted one whose events forks still share.
SELECT 1 FROM session WHERE id = $1 UNION ALL SELECT 1 FROM tombstone WHERE session = $1 AND kept_seq > 0;

-- name: name_taken
-- A name is taken by another session's name or id.
SELECT 1 FROM session WHERE (name = $2 OR id = $2) AND id <> $1 LIMIT 1;

-- name: insert_session
INSERT INTO session (id, name, folder, rank, parent, parent_seq, tally, activity)
VALUES ($1, $2, $3, nextval('activity'), $4, $5, $6, $7);

-- name: insert_lease
-- Of a new session; an imported one is free.
INSERT INTO lease (session, fence, worker, since_ms, seq, hash) VALUES ($1, 1, $2, $3, $4, $5);

-- name: insert_events
-- Once in a transaction, so that every event has a separate position.
INSERT INTO event (session, seq, at_ms, hash, body, place, part)
SELECT session, seq, at_ms, hash, body, (SELECT value + pg_current_xact_id()::text::bigint FROM place_offset), part
FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::bytea[], $5::bytea[]) WITH ORDINALITY
    AS e (session, seq, at_ms, hash, body, part);

-- name: lock_session
-- A fork shares the events of its parent, so the parent must not be deleted in the meantime.
SELECT 1 FROM session WHERE id = $1 FOR SHARE;

-- name: take_lease
-- The number increases with every grant, so an old holder's number is never valid again. A lease of this process for which
-- it has no journal is one whose grant was not answered.
UPDATE lease SET fence = fence + 1, worker = $2, since_ms = $3
WHERE session = $1 AND (worker IS NULL OR worker = $2 OR NOT EXISTS (
    SELECT 1 FROM worker WHERE worker.id = lease.worker AND worker.seen > now() - $4::interval))
RETURNING fence;

-- name: retake_leases
-- Only those of sessions that nobody held since this process released them at these events.
UPDATE lease SET fence = lease.fence + 1, worker = $1, since_ms = $2
FROM unnest($3::text[], $4::bigint[], $5::bigint[], $6::bytea[]) AS r (session, fence, seq, hash)
WHERE lease.session = r.session AND lease.worker IS NULL AND lease.fence = r.fence AND lease.seq = r.seq AND lease.hash = r.hash
RETURNING lease.session, lease.fence;

-- name: lock_lease
-- Whether a live process holds the session; the row stays as it is until the transaction ends.
SELECT worker.pid, worker.host, lease.since_ms,
    worker.seen > now() - $2::interval AS is_alive
FROM lease LEFT JOIN worker ON worker.id = lease.worker WHERE lease.session = $1 FOR UPDATE OF lease;

-- name: holder
SELECT worker.pid, worker.host, lease.since_ms FROM lease JOIN worker ON worker.id = lease.worker
WHERE lease.session = $1 AND worker.seen > now() - $2::interval;

-- name: release_leases
-- Only by the holder.
UPDATE lease SET worker = NULL FROM unnest($1::text[], $2::bigint[]) AS r (session, fence)
WHERE lease.session = r.session AND lease.fence = r.fence AND lease.worker = $3;

-- name: others_alive
-- Whether another process has the store open, or a session is open anywhere.
SELECT EXISTS (SELECT 1 FROM worker WHERE id <> $1 AND seen > now() - $2::interval)
    OR EXISTS (SELECT 1 FROM lease WHERE worker IS NOT NULL);

-- name: beat
-- A row that was removed in an outage is inserted again. Not flushed: after a crash of the server the next beat comes.
WITH unflushed AS (SELECT set_config('synchronous_commit', 'off', true))
INSERT INTO worker (id, host, pid, version, role, key) SELECT $1, $2, $3, $4, $5, $6 FROM unflushed
ON CONFLICT (tenant, id) DO UPDATE SET seen = now(), role = excluded.role, key = excluded.key;

-- name: leave
DELETE FROM worker WHERE id = $1;

-- name: forget_dead
-- Rows of processes that died long ago.
DELETE FROM worker WHERE seen < now() - interval '1 day';

-- name: history
-- A session's events, including those of its ancestors, between two positions. A deleted ancestor has a tombstone.
WITH RECURSIVE line (session, after, upto, parent, depth) AS (
    SELECT id, coalesce(parent_seq, 0), $3::bigint, parent, 1 FROM session WHERE id = $1
    UNION ALL
    SELECT above.id, coalesce(above.parent_seq, 0), least(line.upto, line.after), above.parent, line.depth + 1
    FROM line CROSS JOIN LATERAL (
        SELECT id, parent, parent_seq FROM session WHERE id = line.parent
        UNION ALL
        SELECT session, parent, parent_seq FROM tombstone WHERE session = line.parent AND kept_seq > 0
    ) AS above
    WHERE line.after > $2 AND line.depth < 10000
)
SELECT event.session, event.seq, event.at_ms, event.hash, event.body
FROM line JOIN event ON event.session = line.session
    AND event.seq > greatest(line.after, $2) AND event.seq <= line.upto
ORDER BY event.seq;

-- name: tally_of
SELECT tally FROM session WHERE id = $1;

-- name: tallies_of
SELECT id, tally FROM session WHERE id = ANY ($1::text[]);

-- name: list_sessions
-- Newest activity first; NULL means no limit.
SELECT id, tally FROM session ORDER BY rank DESC LIMIT $1;

-- name: list_folder
SELECT id, tally FROM session WHERE folder = $2 ORDER BY rank DESC LIMIT $1;

-- name: named
-- By id or by one of the names that a reference can stand for; the id first.
SELECT id FROM session WHERE id = $1 OR name = ANY ($2::text[]) ORDER BY id <> $1 LIMIT 1;

-- name: beginning
-- A few are enough to show that there are several.
SELECT id FROM session WHERE id >= $1 AND id < $2 ORDER BY id LIMIT 6;

-- name: ending
-- By the short id that lists show, which is the random end of an id.
SELECT id FROM session WHERE right(id, length($1) + 1) = '-' || $1 ORDER BY id LIMIT 6;

-- name: removal_of
-- Explains that a session was deleted, by its id or old name.
SELECT session, reason, deleted_ms FROM tombstone
WHERE (session = ANY ($1::text[]) OR name = ANY ($1::text[])) AND reason IN ('deleted', 'pruned')
ORDER BY deleted_ms DESC LIMIT 1;

-- name: put_blobs
-- Equal contents are one blob.
INSERT INTO blob (digest, size, content, put_ms)
SELECT digest, size, content, $4 FROM unnest($1::bytea[], $2::bigint[], $3::bytea[]) AS b (digest, size, content)
ON CONFLICT (tenant, digest) DO UPDATE SET puts = blob.puts + 1, put_ms = excluded.put_ms;

-- name: touch_blobs
-- Blobs that are stored already are stored again without their content. Returns the digests that are there.
UPDATE blob SET puts = puts + 1, put_ms = $2 WHERE digest = ANY ($1::bytea[]) RETURNING digest;

-- name: put_object
-- The row of a blob that is an object.
INSERT INTO blob (digest, size, mentions, put_ms) VALUES ($1, $2, $3, $4)
ON CONFLICT (tenant, digest) DO UPDATE SET puts = blob.puts + 1, put_ms = excluded.put_ms;

-- name: use_object
-- While the row of an object is written or removed: the object is there exactly as long as its row.
SELECT pg_advisory_xact_lock_shared(7266332, hashtext(current_setting('holdfast.tenant') || encode($1::bytea, 'hex')));

-- name: own_object
SELECT pg_advisory_xact_lock(7266332, hashtext(current_setting('holdfast.tenant') || encode($1::bytea, 'hex')));

-- name: objects_among
-- Those of the blobs that are objects.
SELECT digest, size FROM blob WHERE digest = ANY ($1::bytea[]) AND content IS NULL ORDER BY digest;

-- name: object_totals
SELECT count(*) AS objects, coalesce(sum(size), 0)::bigint AS object_bytes FROM blob WHERE content IS NULL;

-- name: settings
SELECT name, value FROM setting;

-- name: put_setting
INSERT INTO setting (name, value) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET value = excluded.value;

-- name: get_blobs
SELECT digest, content FROM blob WHERE digest = ANY ($1::bytea[]);

-- name: blob_contents
-- With what an object mentions, instead of its content.
SELECT digest, content, mentions FROM blob WHERE digest = ANY ($1::bytea[]);

-- name: blob_sizes
SELECT digest, size FROM blob WHERE digest = ANY ($1::bytea[]);

-- name: settled_blobs
-- Blobs that are old enough for their event to exist.
SELECT digest FROM blob WHERE put_ms <= $1;

-- name: drop_blobs
-- Except a blob that was just stored again, because its event may not be written yet.
DELETE FROM blob WHERE digest = ANY ($1::bytea[]) AND NOT (puts > 1 AND put_ms > $2) RETURNING digest;

-- name: all_bodies
SELECT body FROM event;

-- name: delete_session
DELETE FROM session WHERE id = $1;

-- name: delete_lease
DELETE FROM lease WHERE session = $1;

-- name: write_tombstone
-- An id can be used and deleted again.
INSERT INTO tombstone (session, name, deleted_ms, reason, events, last_hash, kept_seq, parent, parent_seq)
VALUES ($1, $2, $3, $4, $5, $6, $5, $7, $8)
ON CONFLICT (tenant, session) DO UPDATE SET name = excluded.name, deleted_ms = excluded.deleted_ms, reason = excluded.reason,
    events = excluded.events, last_hash = excluded.last_hash, kept_seq = excluded.kept_seq, parent = excluded.parent,
    parent_seq = excluded.parent_seq;

-- name: tombstone_of
SELECT kept_seq, parent FROM tombstone WHERE session = $1 FOR UPDATE;

-- name: forks_of
-- The last event that a fork of this session shares.
SELECT max(parent_seq) FROM (
    SELECT parent_seq FROM session WHERE parent = $1
    UNION ALL
    SELECT parent_seq FROM tombstone WHERE parent = $1 AND kept_seq > 0
) AS fork;

-- name: delete_events
-- All events that no fork shares.
DELETE FROM event WHERE session = $1 AND seq > $2 RETURNING body;

-- name: delete_passages
DELETE FROM passage WHERE session = $1 AND seq > $2;

-- name: shrink_searched
UPDATE searched SET seq = least(seq, $2) WHERE session = $1;

-- name: shrink_tombstone
UPDATE tombstone SET kept_seq = least(kept_seq, $2) WHERE session = $1;

-- name: event_hashes
-- The known events of a session that is being imported, up to a position.
SELECT seq, hash FROM event WHERE session = $1 AND seq <= $2;

-- name: journals
-- Every session that has events or a row, in the order of their first events, with its row and its lease.
SELECT known.id, session.tally, lease.session IS NOT NULL AS has_lease
FROM (SELECT session AS id, min(place) AS first FROM event GROUP BY session
      UNION ALL SELECT id, NULL FROM session WHERE NOT EXISTS (SELECT 1 FROM event WHERE event.session = session.id)) AS known
LEFT JOIN session USING (id) LEFT JOIN lease ON lease.session = known.id
WHERE NOT EXISTS (SELECT 1 FROM tombstone WHERE tombstone.session = known.id AND kept_seq > 0 AND session.id IS NULL)
ORDER BY known.first NULLS LAST, known.id;

-- name: own_events
SELECT seq, at_ms, hash, body FROM event WHERE session = $1 ORDER BY seq;

-- name: parent_of
SELECT parent, parent_seq FROM session WHERE id = $1
UNION ALL
SELECT parent, parent_seq FROM tombstone WHERE session = $1 AND kept_seq > 0;

-- name: events_between
SELECT seq, at_ms, hash, body FROM event WHERE session = $1 AND seq > $2 AND seq <= $3 ORDER BY seq;

-- name: added_events
-- Rows of a session at impossible positions: before its own part begins.
SELECT seq FROM event WHERE session = $1 AND seq <= $2;

-- name: first_event
SELECT body FROM event WHERE session = $1 ORDER BY seq LIMIT 1;

-- name: put_tally
UPDATE session SET tally = $2, name = $3, folder = $4, activity = $5 WHERE id = $1;

-- name: search_horizon
-- One process at a time extends the index.
SELECT horizon FROM search_progress FOR UPDATE;

-- name: begin_search
INSERT INTO search_progress (horizon) VALUES (0) ON CONFLICT DO NOTHING;

-- name: settled_place
-- Every transaction before this one has ended: nothing more appears there.
SELECT value + pg_snapshot_xmin(pg_current_snapshot())::text::bigint FROM place_offset;

-- name: newest_place
SELECT max(place) FROM event;

-- name: move_places
-- After a restore on another server: the next transaction comes behind everything that was restored.
UPDATE place_offset SET value = (SELECT max(place) FROM event) + 1
WHERE value + pg_snapshot_xmax(pg_current_snapshot())::text::bigint <= (SELECT max(place) FROM event);

-- name: unsearched
-- Events that the index may lack: written since the horizon, and beyond what was read of their session.
SELECT event.session, event.seq, event.at_ms, event.body FROM event LEFT JOIN searched USING (session)
WHERE event.place >= $1 AND event.seq > coalesce(searched.seq, 0)
ORDER BY event.place, event.part LIMIT $2;

-- name: note_searched
INSERT INTO searched (session, seq) SELECT * FROM unnest($1::text[], $2::bigint[])
ON CONFLICT (tenant, session) DO UPDATE SET seq = excluded.seq;

-- name: set_horizon
UPDATE search_progress SET horizon = $1;

-- name: add_passages
INSERT INTO passage (session, seq, turn, at_ms, text, words)
SELECT session, seq, turn, at_ms, text, array_to_tsvector(string_to_array(words, ' '))
FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::bigint[], $5::text[], $6::text[])
    AS p (session, seq, turn, at_ms, text, words);

-- name: find_passages
SELECT session, seq, turn, at_ms, text FROM find_passages($1, $2);

-- name: owner_of
-- The session that shows an event: its own or, if that was deleted, the newest fork that shares it.
WITH RECURSIVE owner (id) AS (
    SELECT $1::text COLLATE "C"
    UNION
    SELECT fork.id FROM owner JOIN (
        SELECT id, parent, parent_seq FROM session
        UNION ALL
        SELECT session, parent, parent_seq FROM tombstone WHERE kept_seq > 0
    ) AS fork ON fork.parent = owner.id AND fork.parent_seq >= $2
    WHERE NOT EXISTS (SELECT 1 FROM session WHERE id = $1)
)
SELECT session.id FROM session JOIN owner USING (id) ORDER BY session.rank DESC LIMIT 1;

-- name: clear_search
-- Not TRUNCATE, which would empty the tables of all tenants.
DELETE FROM passage; DELETE FROM searched; DELETE FROM search_progress;

-- name: events_after
-- In the order of the transactions, of those that have all ended.
SELECT place, part, session, seq, at_ms, body FROM event
WHERE (place, part) > ($1, $2) AND place < $3 ORDER BY place, part LIMIT $4;

-- name: last_place
SELECT place, part FROM event WHERE place < $1 ORDER BY place DESC, part DESC LIMIT 1;

-- name: page_sessions
-- A page behind a place in the list; NULL means any folder or activity.
SELECT id, tally, rank FROM session WHERE (rank, id) < ($1, $2) AND ($3::text IS NULL OR folder = $3)
ORDER BY rank DESC, id DESC LIMIT $4;

-- name: page_active
SELECT id, tally, rank FROM session
WHERE activity = $5 AND activity <> 'ready' AND (rank, id) < ($1, $2) AND ($3::text IS NULL OR folder = $3)
ORDER BY rank DESC, id DESC LIMIT $4;

-- name: waiting_sessions
SELECT id, tally FROM session WHERE activity = 'waiting' AND activity <> 'ready' ORDER BY rank DESC;

-- name: events_at
SELECT event.session, event.seq, event.body FROM unnest($1::text[], $2::bigint[]) AS w (session, seq)
JOIN event ON event.session = w.session AND event.seq = w.seq;

-- name: notify
-- A notification gets a transaction number, so its commit would flush the log: nobody needs that, watchers look by themselves.
SELECT set_config('synchronous_commit', 'off', true), pg_notify($1, '');

-- name: shares_of
-- The version of a tree whose first session is still there, with its shares.
SELECT share_tree.version, share_tree.change, share.session, share.amounts
FROM session JOIN share_tree ON share_tree.tree = session.id LEFT JOIN share ON share.tree = session.id
WHERE session.id = $1;

-- name: begin_tree
INSERT INTO share_tree (tree) SELECT id FROM session WHERE id = $1 ON CONFLICT DO NOTHING;

-- name: put_shares
-- Writes only what was computed from the newest shares: otherwise the version differs, and nothing is returned.
WITH current AS (
    UPDATE share_tree SET version = version + 1, change = $5 WHERE tree = $1 AND version = $2 RETURNING version
), written AS (
    INSERT INTO share (tree, session, amounts)
    SELECT $1, s.session, s.amounts FROM current, unnest($3::text[], $4::bytea[]) AS s (session, amounts)
    ON CONFLICT (tenant, tree, session) DO UPDATE SET amounts = excluded.amounts
)
SELECT version FROM current;

-- name: delete_shares
-- A tree whose first session is deleted has no limits.
WITH gone AS (DELETE FROM share_tree WHERE tree = $1) DELETE FROM share WHERE tree = $1;

-- name: post_requests
-- Of sessions that are there, which are returned; a request that is posted again is the same one.
WITH known AS (
    SELECT r.id, r.session, r.body, r.place
    FROM unnest($1::text[], $2::text[], $3::bytea[]) WITH ORDINALITY AS r (id, session, body, place)
    JOIN session ON session.id = r.session
), posted AS (
    INSERT INTO request (id, session, body) SELECT id, session, body FROM known ORDER BY place
    ON CONFLICT (tenant, id) DO NOTHING
)
SELECT session FROM known ORDER BY place;

-- name: requests_of
SELECT session, id, body FROM request WHERE session = ANY ($1::text[]) ORDER BY number;

-- name: remove_some_requests
-- Not flushed: what of it a crash of the server brings back is on record as carried out.
WITH unflushed AS (SELECT set_config('synchronous_commit', 'off', true))
DELETE FROM request USING unflushed WHERE id = ANY ($1::text[]);

-- name: remove_requests
DELETE FROM request WHERE session = $1;

-- name: document
SELECT version, content FROM document WHERE name = $1;

-- name: put_document
-- Only what was computed from the newest version.
INSERT INTO document (name, version, content) SELECT $1, 1, $2 WHERE $3::bigint = 0
ON CONFLICT (tenant, name) DO NOTHING RETURNING version;

-- name: replace_document
UPDATE document SET version = version + 1, content = $2 WHERE name = $1 AND version = $3 RETURNING version;

-- name: keep_api_key
INSERT INTO api_key (id, principal, may, hash) VALUES ($1, $2, $3, $4);

-- name: api_key
SELECT id, principal, may, hash FROM api_key WHERE id = $1;

-- name: api_keys
SELECT id, principal, may FROM api_key ORDER BY created, id;

-- name: remove_api_key
DELETE FROM api_key WHERE id = $1 RETURNING id;

-- name: counts
SELECT (SELECT count(*) FROM session) AS sessions, (SELECT count(*) FROM session WHERE activity = 'waiting') AS waiting,
    (SELECT count(*) FROM request) AS requests, pg_database_size(current_database()) AS bytes;

-- name: workers
-- The processes that are alive, newest first.
SELECT worker.id, worker.host, worker.pid, worker.version, worker.role, worker.key,
    extract(epoch FROM now() - worker.seen)::float8 AS seen_seconds,
    (SELECT count(*) FROM lease WHERE lease.worker = worker.id) AS sessions
FROM worker WHERE worker.seen > now() - $1::interval ORDER BY worker.started DESC;

-- name: tenant_tables
-- The tables with rows of tenants, those of the engine included.
SELECT quote_ident(relname) AS name FROM pg_class JOIN pg_attribute ON attrelid = pg_class.oid
WHERE relnamespace = 'holdfast'::regnamespace AND relkind = 'r' AND attname = 'tenant' AND NOT attisdropped ORDER BY relname;

-- name: workers_of
-- The processes of a tenant that are alive. It names the tenant, because an administrator may see all.
SELECT host, pid FROM worker WHERE tenant = $1 AND seen > now() - $2::interval ORDER BY started;

-- name: durability
-- What decides whether an acknowledged event can be lost. Without the right to read statistics a standby has no state.
SELECT current_setting('fsync')::boolean AS flushes, current_setting('synchronous_standby_names') <> '' AS waits_for_standby,
    (SELECT count(*) FROM pg_stat_replication WHERE coalesce(state, 'streaming') = 'streaming') AS standbys;

-- name: begin_usage
INSERT INTO usage_progress (horizon) VALUES (0) ON CONFLICT DO NOTHING;

-- name: usage_horizon
-- One process at a time folds.
SELECT horizon FROM usage_progress FOR UPDATE;

-- name: set_usage_horizon
UPDATE usage_progress SET horizon = $1;

-- name: unfolded
-- Events that may not be folded in yet: written since the horizon, and beyond what was read of their session. A deleted session whose
-- events a fork shares does not count.
SELECT event.session, event.seq, event.at_ms, event.body FROM event JOIN session ON session.id = event.session
LEFT JOIN usage_place ON usage_place.session = event.session
WHERE event.place >= $1 AND event.seq > coalesce(usage_place.seq, 0)
ORDER BY event.place, event.part LIMIT $2;

-- name: usage_places
SELECT session, model, folder, pair FROM usage_place WHERE session = ANY ($1::text[]);

-- name: put_usage_places
INSERT INTO usage_place SELECT * FROM unnest($1::text[], $2::bigint[], $3::text[], $4::text[], $5::text[])
ON CONFLICT (tenant, session) DO UPDATE SET seq = excluded.seq, model = excluded.model, folder = excluded.folder, pair = excluded.pair;

-- name: usage_asked
SELECT session, escalation, at_ms FROM usage_asked;

-- name: put_usage_asked
INSERT INTO usage_asked SELECT * FROM unnest($1::text[], $2::text[], $3::bigint[]) ON CONFLICT DO NOTHING;

-- name: settle_usage_asked
DELETE FROM usage_asked USING unnest($1::text[], $2::text[]) AS settled (session, escalation)
WHERE usage_asked.session = settled.session AND usage_asked.escalation = settled.escalation;

-- name: add_usage_parts
INSERT INTO usage_part SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[],
    $6::bigint[], $7::bigint[], $8::bigint[], $9::bigint[], $10::bigint[], $11::bigint[], $12::bigint[], $13::bigint[], $14::bigint[], $15::bigint[], $16::bigint[], $17::bigint[])
ON CONFLICT (tenant, session, day, model, folder, pair) DO UPDATE SET
    nano_usd = usage_part.nano_usd + excluded.nano_usd, unpriced = usage_part.unpriced + excluded.unpriced,
    input_tokens = usage_part.input_tokens + excluded.input_tokens, output_tokens = usage_part.output_tokens + excluded.output_tokens,
    cached_tokens = usage_part.cached_tokens + excluded.cached_tokens, requests = usage_part.requests + excluded.requests,
    calls = usage_part.calls + excluded.calls, refused = usage_part.refused + excluded.refused,
    commands = usage_part.commands + excluded.commands, prompts = usage_part.prompts + excluded.prompts,
    answered = usage_part.answered + excluded.answered, answer_ms = usage_part.answer_ms + excluded.answer_ms;

-- name: add_usage_totals
-- Several sessions may count for the same row.
INSERT INTO usage_total SELECT day, model, folder, pair,
    sum(nano_usd), sum(unpriced), sum(input_tokens), sum(output_tokens), sum(cached_tokens), sum(requests),
    sum(calls), sum(refused), sum(commands), sum(prompts), sum(answered), sum(answer_ms)
FROM unnest($1::text[], $2::text[], $3::text[], $4::text[],
    $5::bigint[], $6::bigint[], $7::bigint[], $8::bigint[], $9::bigint[], $10::bigint[], $11::bigint[], $12::bigint[], $13::bigint[], $14::bigint[], $15::bigint[], $16::bigint[])
    AS u (day, model, folder, pair, nano_usd, unpriced, input_tokens, output_tokens, cached_tokens, requests,
    calls, refused, commands, prompts, answered, answer_ms)
GROUP BY day, model, folder, pair
ON CONFLICT (tenant, day, model, folder, pair) DO UPDATE SET
    nano_usd = usage_total.nano_usd + excluded.nano_usd, unpriced = usage_total.unpriced + excluded.unpriced,
    input_tokens = usage_total.input_tokens + excluded.input_tokens, output_tokens = usage_total.output_tokens + excluded.output_tokens,
    cached_tokens = usage_total.cached_tokens + excluded.cached_tokens, requests = usage_total.requests + excluded.requests,
    calls = usage_total.calls + excluded.calls, refused = usage_total.refused + excluded.refused,
    commands = usage_total.commands + excluded.commands, prompts = usage_total.prompts + excluded.prompts,
    answered = usage_total.answered + excluded.answered, answer_ms = usage_total.answer_ms + excluded.answer_ms;

-- name: take_from_usage_total
-- What a deleted session used no longer counts.
UPDATE usage_total SET
    nano_usd = usage_total.nano_usd - gone.nano_usd, unpriced = usage_total.unpriced - gone.unpriced,
    input_tokens = usage_total.input_tokens - gone.input_tokens, output_tokens = usage_total.output_tokens - gone.output_tokens,
    cached_tokens = usage_total.cached_tokens - gone.cached_tokens, requests = usage_total.requests - gone.requests,
    calls = usage_total.calls - gone.calls, refused = usage_total.refused - gone.refused,
    commands = usage_total.commands - gone.commands, prompts = usage_total.prompts - gone.prompts,
    answered = usage_total.answered - gone.answered, answer_ms = usage_total.answer_ms - gone.answer_ms
FROM usage_part AS gone
WHERE gone.session = $1 AND gone.day = usage_total.day AND gone.model = usage_total.model
    AND gone.folder = usage_total.folder AND gone.pair = usage_total.pair;

-- name: drop_empty_usage
DELETE FROM usage_total WHERE requests + calls + refused + commands + prompts + answered = 0;

-- name: forget_usage_part
DELETE FROM usage_part WHERE session = $1;

-- name: forget_usage_place
DELETE FROM usage_place WHERE session = $1;

-- name: forget_usage_asked
DELETE FROM usage_asked WHERE session = $1;

-- name: clear_usage
-- Of one tenant: TRUNCATE would take the rows of all.
WITH progress AS (DELETE FROM usage_progress), place AS (DELETE FROM usage_place), asked AS (DELETE FROM usage_asked),
    part AS (DELETE FROM usage_part)
DELETE FROM usage_total;

-- name: usage_totals
SELECT NULL AS session, day, model, folder, pair,
    nano_usd, unpriced, input_tokens, output_tokens, cached_tokens, requests,
    calls, refused, commands, prompts, answered, answer_ms
FROM usage_total WHERE day >= $1 ORDER BY day, model, folder, pair;

-- name: usage_parts
SELECT session, day, model, folder, pair,
    nano_usd, unpriced, input_tokens, output_tokens, cached_tokens, requests,
    calls, refused, commands, prompts, answered, answer_ms
FROM usage_part WHERE day >= $1 AND ($2::text IS NULL OR session = $2) ORDER BY session, day, model, folder, pair;
