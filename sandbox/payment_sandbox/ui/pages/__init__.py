"""The payment pages that customers see."""

from payment_sandbox.ui.pages import bank_qr_page, page_routes
from payment_sandbox.ui.pages.pages_face import FACE

__all__ = ["FACE", "bank_qr_page", "page_routes"]
