"""Record storage in memory or in an SQLite file; snapshots and their validation.

Other packages may import ``codec``, ``dialects``, ``history``, ``memory``, ``rows``, ``snapshot`` and
``sqlite``.
"""
