-- What happened, in order. `previous` is the hash of the entry before; `hash` covers every other
-- column. Nothing here is personal.
CREATE TABLE entries (
    sequence    BIGINT PRIMARY KEY CHECK (sequence > 0),
    id          TEXT NOT NULL UNIQUE,
    time        TEXT NOT NULL,
    kind        TEXT NOT NULL CHECK (kind IN ('promise', 'closed', 'forgotten')),
    -- Of a promise:
    model       TEXT,
    request     TEXT,
    holds_until TEXT,
    commitment  BYTEA,
    -- Of a closing: the promise, by its sequence, and how it ended.
    closes      BIGINT UNIQUE REFERENCES entries (sequence),
    closed_as   TEXT CHECK (closed_as IN ('fulfilled', 'withdrawn')),
    -- Of a forgetting: the promises, as a JSON list of sequences.
    forgets     TEXT,
    previous    BYTEA NOT NULL,
    hash        BYTEA NOT NULL
);

CREATE INDEX entries_by_model ON entries (model);

-- What is personal, and the salt without which the commitment tells nothing about it.
CREATE TABLE payloads (
    sequence BIGINT PRIMARY KEY REFERENCES entries (sequence),
    salt     BYTEA NOT NULL,
    subject  TEXT NOT NULL,
    document TEXT NOT NULL
);

CREATE INDEX payloads_by_subject ON payloads (subject);

-- Where the chain ends, so that an end cut off is missed. Who appends locks this row.
CREATE TABLE head (
    one   BIGINT PRIMARY KEY CHECK (one = 1),
    count BIGINT NOT NULL,
    hash  BYTEA NOT NULL
);

INSERT INTO head (one, count, hash) VALUES (1, 0, decode(repeat('00', 32), 'hex'));

CREATE FUNCTION ledger_refuses() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the ledger is append-only: % on % is refused', TG_OP, TG_TABLE_NAME;
END;
$$;

CREATE TRIGGER entries_stay BEFORE UPDATE OR DELETE ON entries
    FOR EACH ROW EXECUTE FUNCTION ledger_refuses();

CREATE TRIGGER entries_are_not_emptied BEFORE TRUNCATE ON entries
    FOR EACH STATEMENT EXECUTE FUNCTION ledger_refuses();

CREATE TRIGGER payloads_are_not_edited BEFORE UPDATE ON payloads
    FOR EACH ROW EXECUTE FUNCTION ledger_refuses();
