-- What sessions used, derived from the journals and updated when somebody asks, as the full-text index is. `horizon` is the oldest
-- transaction that may still have been running then; `usage_place` is how far each session was read, and what its next event counts for.
CREATE TABLE usage_progress (horizon bigint NOT NULL);
CREATE TABLE usage_place (
    session text COLLATE "C" NOT NULL,
    seq     bigint NOT NULL,
    model   text NOT NULL,
    folder  text NOT NULL,
    pair    text NOT NULL
);
CREATE TABLE usage_asked (
    session    text COLLATE "C" NOT NULL,
    escalation text COLLATE "C" NOT NULL,
    at_ms      bigint NOT NULL
);

-- By session, so that a deleted one can be taken out of the totals, and in total, so that a page reads a few rows a day.
CREATE TABLE usage_part (
    session text COLLATE "C" NOT NULL, day text COLLATE "C" NOT NULL, model text COLLATE "C" NOT NULL,
    folder text COLLATE "C" NOT NULL, pair text COLLATE "C" NOT NULL,
    nano_usd bigint NOT NULL, unpriced bigint NOT NULL, input_tokens bigint NOT NULL, output_tokens bigint NOT NULL,
    cached_tokens bigint NOT NULL, requests bigint NOT NULL, calls bigint NOT NULL, refused bigint NOT NULL,
    commands bigint NOT NULL, prompts bigint NOT NULL, answered bigint NOT NULL, answer_ms bigint NOT NULL
);
CREATE TABLE usage_total (
    day text COLLATE "C" NOT NULL, model text COLLATE "C" NOT NULL,
    folder text COLLATE "C" NOT NULL, pair text COLLATE "C" NOT NULL,
    nano_usd bigint NOT NULL, unpriced bigint NOT NULL, input_tokens bigint NOT NULL, output_tokens bigint NOT NULL,
    cached_tokens bigint NOT NULL, requests bigint NOT NULL, calls bigint NOT NULL, refused bigint NOT NULL,
    commands bigint NOT NULL, prompts bigint NOT NULL, answered bigint NOT NULL, answer_ms bigint NOT NULL
);

-- Separated by tenant, as every other table is.
DO $$
DECLARE
    one text;
BEGIN
    FOREACH one IN ARRAY ARRAY['usage_progress', 'usage_place', 'usage_asked', 'usage_part', 'usage_total']
    LOOP
        EXECUTE format('ALTER TABLE %I ADD COLUMN tenant text COLLATE "C" NOT NULL', one);
        EXECUTE format('ALTER TABLE %I ALTER COLUMN tenant SET DEFAULT current_setting(''holdfast.tenant'')', one);
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', one);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', one);
        EXECUTE format('CREATE POLICY own ON %I USING (tenant = current_setting(''holdfast.tenant''))', one);
    END LOOP;
END $$;
ALTER TABLE usage_progress ADD PRIMARY KEY (tenant);
ALTER TABLE usage_place ADD PRIMARY KEY (tenant, session);
ALTER TABLE usage_asked ADD PRIMARY KEY (tenant, session, escalation);
ALTER TABLE usage_part ADD PRIMARY KEY (tenant, session, day, model, folder, pair);
ALTER TABLE usage_total ADD PRIMARY KEY (tenant, day, model, folder, pair);
