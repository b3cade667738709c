"""Record storage in memory or in an SQLite file; snapshots and their validation."""
