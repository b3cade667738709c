"""The payment pages that customers see."""

from payment_sandbox.web.pages import bank_qr, views
from payment_sandbox.web.pages.blueprint import pages

__all__ = ["bank_qr", "pages", "views"]
