"""The pytest plugin: fixtures, reports on failed tests, and rehearsals.

No other package imports it.
"""

from payment_sandbox.loading import late

late(__name__, "rehearsal", "reports")  # 280 ms of a suite without payments
