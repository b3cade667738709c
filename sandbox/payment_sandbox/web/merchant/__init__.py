"""The merchant API."""

from payment_sandbox.web.merchant import merchant_routes
from payment_sandbox.web.merchant.merchant_blueprint import answer_unrouted, merchant

__all__ = ["answer_unrouted", "merchant", "merchant_routes"]
