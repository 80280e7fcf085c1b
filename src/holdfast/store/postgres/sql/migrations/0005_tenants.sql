-- Tenants: every row belongs to one, and a connection sees only the rows of the tenant that its setting `holdfast.tenant` names.
-- The database enforces that for every statement. Keys begin with the tenant, so that not even a conflict shows that another
-- tenant has the same id, name or content.
CREATE TABLE tenant (
    name    text COLLATE "C" PRIMARY KEY,
    created timestamptz NOT NULL DEFAULT now()
);
INSERT INTO tenant (name) VALUES ('default');
ALTER TABLE tenant ENABLE ROW LEVEL SECURITY;  -- not for its owner, who creates tenants
CREATE POLICY own ON tenant USING (name = current_setting('holdfast.tenant'));

DO $$
DECLARE
    one text;
BEGIN
    FOREACH one IN ARRAY ARRAY['worker', 'lease', 'event', 'place_offset', 'session', 'blob', 'tombstone', 'passage', 'searched',
        'search_progress', 'share_tree', 'share', 'request', 'document']
    LOOP
        -- With a constant first: what is there belongs to the default tenant, and no row is rewritten.
        EXECUTE format('ALTER TABLE %I ADD COLUMN tenant text COLLATE "C" NOT NULL DEFAULT ''default''', one);
        EXECUTE format('ALTER TABLE %I ALTER COLUMN tenant SET DEFAULT current_setting(''holdfast.tenant'')', one);
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', one);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', one);
        EXECUTE format('CREATE POLICY own ON %I USING (tenant = current_setting(''holdfast.tenant''))', one);
    END LOOP;
END $$;

ALTER TABLE worker DROP CONSTRAINT worker_pkey, ADD PRIMARY KEY (tenant, id);
ALTER TABLE lease DROP CONSTRAINT lease_pkey, ADD PRIMARY KEY (tenant, session);
ALTER TABLE event DROP CONSTRAINT event_pkey, ADD PRIMARY KEY (tenant, session, seq);
ALTER TABLE place_offset ADD PRIMARY KEY (tenant);
ALTER TABLE session DROP CONSTRAINT session_pkey, ADD PRIMARY KEY (tenant, id),
    DROP CONSTRAINT session_name_key, ADD CONSTRAINT session_name_key UNIQUE (tenant, name);
ALTER TABLE blob DROP CONSTRAINT blob_pkey, ADD PRIMARY KEY (tenant, digest);
ALTER TABLE tombstone DROP CONSTRAINT tombstone_pkey, ADD PRIMARY KEY (tenant, session);
ALTER TABLE passage DROP CONSTRAINT passage_pkey, ADD PRIMARY KEY (tenant, id);
ALTER TABLE searched DROP CONSTRAINT searched_pkey, ADD PRIMARY KEY (tenant, session);
ALTER TABLE search_progress ADD PRIMARY KEY (tenant);
ALTER TABLE share_tree DROP CONSTRAINT share_tree_pkey, ADD PRIMARY KEY (tenant, tree);
ALTER TABLE share DROP CONSTRAINT share_pkey, ADD PRIMARY KEY (tenant, tree, session);
ALTER TABLE request DROP CONSTRAINT request_pkey, ADD PRIMARY KEY (tenant, number),
    DROP CONSTRAINT request_id_key, ADD CONSTRAINT request_id_key UNIQUE (tenant, id);
ALTER TABLE document DROP CONSTRAINT document_pkey, ADD PRIMARY KEY (tenant, name);

DROP INDEX event_place, session_rank, session_folder, session_activity, session_parent, blob_put, tombstone_parent, passage_session,
    request_session, lease_worker;
CREATE INDEX event_place ON event (tenant, place, part);
CREATE INDEX session_rank ON session (tenant, rank);
CREATE INDEX session_folder ON session (tenant, folder, rank);
CREATE INDEX session_activity ON session (tenant, activity, rank) WHERE activity <> 'ready';
CREATE INDEX session_parent ON session (tenant, parent) WHERE parent IS NOT NULL;
CREATE INDEX blob_put ON blob (tenant, put_ms);
CREATE INDEX tombstone_parent ON tombstone (tenant, parent) WHERE kept_seq > 0;
CREATE INDEX passage_session ON passage (tenant, session, seq);
CREATE INDEX request_session ON request (tenant, session, number);
CREATE INDEX lease_worker ON lease (tenant, worker) WHERE worker IS NOT NULL;

-- A search by words needs the index over the words of all tenants, which a statement under row-level security cannot use: whether
-- a text matches is not a leakproof function. So this one function looks with the rights of the owner, at its own tenant only.
ALTER TABLE passage NO FORCE ROW LEVEL SECURITY;
CREATE FUNCTION find_passages(query text, most bigint)
RETURNS TABLE (session text, seq bigint, turn bigint, at_ms bigint, text text)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = holdfast, pg_temp AS $$
    SELECT p.session, p.seq, p.turn, p.at_ms, p.text FROM passage AS p
    WHERE p.tenant = current_setting('holdfast.tenant') AND p.words @@ query::tsquery ORDER BY p.id DESC LIMIT most
$$;
