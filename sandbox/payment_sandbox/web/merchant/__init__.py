"""The merchant API."""

from payment_sandbox.web.merchant import orders
from payment_sandbox.web.merchant.exchange import api, keep_unrouted

__all__ = ["api", "keep_unrouted", "orders"]
