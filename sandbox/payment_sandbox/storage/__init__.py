"""Record storage in memory or in an SQLite file; snapshots and their validation.

Other packages may import ``codec``, ``journal_rows``, ``memory``, ``snapshot`` and ``sqlite``.
"""
