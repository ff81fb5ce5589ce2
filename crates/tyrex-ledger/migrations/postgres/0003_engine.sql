-- Models that are served, with all they were made from: a restart brings them back.
CREATE TABLE models (
    id TEXT NOT NULL PRIMARY KEY,
    created TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    -- The named data set it was trained on; NULL for an upload.
    dataset TEXT,
    onnx BYTEA NOT NULL,
    -- Of an upload: the schema as TOML, the file of rows and its format, how to read the model.
    schema_text TEXT,
    data_format TEXT,
    data_file BYTEA,
    options TEXT NOT NULL,
    -- How it is trained again, as JSON; NULL if it is not.
    retraining TEXT,
    active BIGINT NOT NULL DEFAULT 0
);

-- Its retrained versions, as they come.
CREATE TABLE members (
    model TEXT NOT NULL REFERENCES models (id) ON DELETE CASCADE,
    number BIGINT NOT NULL,
    onnx BYTEA NOT NULL,
    PRIMARY KEY (model, number)
);

-- Long work. It goes on after a restart.
CREATE TABLE jobs (
    id TEXT NOT NULL PRIMARY KEY,
    kind TEXT NOT NULL,
    state TEXT NOT NULL,
    model TEXT NOT NULL,
    question TEXT NOT NULL,
    total BIGINT NOT NULL,
    created TEXT NOT NULL,
    finished TEXT,
    problem TEXT,
    result TEXT
);

-- The rows of a job that are finished: the document, and the cells of its line in a table.
CREATE TABLE job_rows (
    job TEXT NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
    number BIGINT NOT NULL,
    document TEXT NOT NULL,
    cells TEXT NOT NULL,
    promise TEXT,
    PRIMARY KEY (job, number)
);
