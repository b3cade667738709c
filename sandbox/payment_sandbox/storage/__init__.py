"""Record storage in memory, in an SQLite file or in PostgreSQL; snapshots and their validation.

Other packages may import ``codec``, ``journal_rows``, ``memory``, ``postgresql``, ``snapshot``, ``sql`` and
``sqlite``.
"""

from payment_sandbox.loading import late

late(__name__, "snapshot", "sql", "sqlite")  # 13 ms of a first test, 12 of serve
