-- Of an upload: the file of rows that the model was trained on, and its format, where they are
-- apart from the rows to explain.
ALTER TABLE models ADD COLUMN reference_format TEXT;
ALTER TABLE models ADD COLUMN reference_file BYTEA;
