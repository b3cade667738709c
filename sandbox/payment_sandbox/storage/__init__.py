"""Record storage in memory or in an SQLite file; snapshots and their validation.

Other packages may import ``codec``, ``dialects``, ``journal_rows``, ``memory``, ``rows``, ``snapshot`` and
``sqlite``.
"""
