"""Online banking by login and confirmation."""

from payment_sandbox.methods.base import Capabilities
from payment_sandbox.methods.page import PageMethod


class BankRedirectDe(PageMethod):
    """The customer logs in and confirms (BRD-01)."""

    name = "bank-redirect-de"
    capabilities = Capabilities(default_expiration="PT60M", brand="bank-redirect-de")
