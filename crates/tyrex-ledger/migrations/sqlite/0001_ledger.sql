-- What happened, in order. `previous` is the hash of the entry before; `hash` covers every other
-- column. Nothing here is personal.
CREATE TABLE entries (
    sequence    INTEGER PRIMARY KEY CHECK (sequence > 0),
    id          TEXT NOT NULL UNIQUE,
    time        TEXT NOT NULL,
    kind        TEXT NOT NULL CHECK (kind IN ('promise', 'closed', 'forgotten')),
    -- Of a promise:
    model       TEXT,
    request     TEXT,
    holds_until TEXT,
    commitment  BLOB,
    -- Of a closing: the promise, by its sequence, and how it ended.
    closes      INTEGER UNIQUE REFERENCES entries (sequence),
    closed_as   TEXT CHECK (closed_as IN ('fulfilled', 'withdrawn')),
    -- Of a forgetting: the promises, as a JSON list of sequences.
    forgets     TEXT,
    previous    BLOB NOT NULL,
    hash        BLOB NOT NULL
) STRICT;

CREATE INDEX entries_by_model ON entries (model);

-- What is personal, and the salt without which the commitment tells nothing about it.
CREATE TABLE payloads (
    sequence INTEGER PRIMARY KEY REFERENCES entries (sequence),
    salt     BLOB NOT NULL,
    subject  TEXT NOT NULL,
    document TEXT NOT NULL
) STRICT;

CREATE INDEX payloads_by_subject ON payloads (subject);

-- Where the chain ends, so that an end cut off is missed.
CREATE TABLE head (
    one   INTEGER PRIMARY KEY CHECK (one = 1),
    count INTEGER NOT NULL,
    hash  BLOB NOT NULL
) STRICT;

INSERT INTO head (one, count, hash) VALUES (1, 0, zeroblob(32));

CREATE TRIGGER entries_are_not_edited BEFORE UPDATE ON entries
BEGIN
    SELECT RAISE(ABORT, 'entries of the ledger are never changed');
END;

CREATE TRIGGER entries_are_not_removed BEFORE DELETE ON entries
BEGIN
    SELECT RAISE(ABORT, 'entries of the ledger are never removed');
END;

CREATE TRIGGER payloads_are_not_edited BEFORE UPDATE ON payloads
BEGIN
    SELECT RAISE(ABORT, 'payloads of the ledger are forgotten, never changed');
END;
