"""The merchant API."""

from payment_sandbox.web.merchant import orders
from payment_sandbox.web.merchant.face import FACE, answer_unrouted

__all__ = ["FACE", "answer_unrouted", "orders"]
