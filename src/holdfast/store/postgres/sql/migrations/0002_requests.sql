-- What a session is asked to do, until the worker that holds it has done it. Written together with the job that wakes a worker.
CREATE TABLE request (
    number  bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id      text COLLATE "C" NOT NULL UNIQUE,
    session text COLLATE "C" NOT NULL,
    body    bytea NOT NULL,
    at      timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX request_session ON request (session, number);

-- To count what each worker holds.
CREATE INDEX lease_worker ON lease (worker) WHERE worker IS NOT NULL;
