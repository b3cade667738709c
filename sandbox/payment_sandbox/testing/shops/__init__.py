"""Webhooks and requests for a merchant's application in this process."""

from payment_sandbox.loading import late

late(__name__, "asgi", "browser")  # 4 ms of a first test
