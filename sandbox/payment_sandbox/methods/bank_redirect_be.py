"""Online banking, confirmed at the customer's bank."""

from payment_sandbox.methods.base import Capabilities
from payment_sandbox.methods.page import PageMethod


class BankRedirectBe(PageMethod):
    """Plays out in mode live only (BRB-01)."""

    name = "bank-redirect-be"
    capabilities = Capabilities(default_expiration="PT60M", testable=False, brand="bank-redirect-be")
