"""Rehearsals: rerun one pytest item with one variation, and look at the money when nothing is due any more.

``driver`` plans and reports, ``variations`` has the table of changes, and ``judging`` judges each ``run``.
"""

from pytest_payment_sandbox.rehearsal import driver as driver
