"""The records in responses, and their shapes."""

from payment_sandbox.loading import late

late(__name__, "order_tables")  # 7 ms of a command
