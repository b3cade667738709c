"""Record storage in memory or in an SQLite file; snapshots and their validation.

Others import ``bulletin``, ``codec``, ``history``, ``memory``, ``places``, ``postgresql``, ``rows``,
``sharing``, ``snapshot`` and ``sqlite``.
"""
