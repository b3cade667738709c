"""Where records live: in memory or in an SQLite file; snapshots, and what a document must hold to be one."""
