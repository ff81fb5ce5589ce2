-- Who may ask. Of a token only the hash is here; `id` is its public part.
CREATE TABLE tokens (
    id      TEXT PRIMARY KEY,
    name    TEXT NOT NULL,
    role    TEXT NOT NULL CHECK (role IN ('read', 'explain', 'admin')),
    hash    BYTEA NOT NULL,
    created TEXT NOT NULL,
    expires TEXT,
    revoked TEXT
);
