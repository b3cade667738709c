"""The merchant API."""

from payment_sandbox.web.merchant import merchant_routes
from payment_sandbox.web.merchant.merchant_face import FACE, answer_unrouted

__all__ = ["FACE", "answer_unrouted", "merchant_routes"]
