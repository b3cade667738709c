"""The payment pages that customers see."""

from payment_sandbox.web.pages import bank_qr, views
from payment_sandbox.web.pages.blueprint import FACE

__all__ = ["FACE", "bank_qr", "views"]
