"""The merchant API."""

from payment_sandbox.web.merchant import orders
from payment_sandbox.web.merchant.face import FACE, keep_unrouted

__all__ = ["FACE", "keep_unrouted", "orders"]
