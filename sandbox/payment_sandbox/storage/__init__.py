"""Record storage in memory or in an SQLite file; snapshots and their validation.

Other packages import ``codec``, ``dialects``, ``history``, ``memory``, ``rows``, ``snapshot`` and ``sqlite``.
"""
