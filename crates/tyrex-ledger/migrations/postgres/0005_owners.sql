-- The public part of the token that asked for a job; NULL if no token was required.
ALTER TABLE jobs ADD COLUMN owner TEXT;
