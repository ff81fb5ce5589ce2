//! The one database: a SQLite file, or PostgreSQL.
