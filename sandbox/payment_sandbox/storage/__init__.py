"""Record storage in memory, in an SQLite file or in PostgreSQL; snapshots and their validation.

Other packages may import ``codec``, ``journal_rows``, ``memory``, ``postgresql``, ``snapshot``, ``sql`` and
``sqlite``.
"""
