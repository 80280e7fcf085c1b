-- Keys of programs and people for the API of `holdfast serve`. Only a hash of the secret part is kept.
CREATE TABLE api_key (
    tenant    text COLLATE "C" NOT NULL DEFAULT current_setting('holdfast.tenant'),
    id        text COLLATE "C" NOT NULL,
    principal text   NOT NULL,
    may       text COLLATE "C" NOT NULL CHECK (may IN ('look', 'answer', 'operate')),
    hash      bytea  NOT NULL,
    created   timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (tenant, id)
);
ALTER TABLE api_key ENABLE ROW LEVEL SECURITY;
ALTER TABLE api_key FORCE ROW LEVEL SECURITY;
CREATE POLICY own ON api_key USING (tenant = current_setting('holdfast.tenant'));
