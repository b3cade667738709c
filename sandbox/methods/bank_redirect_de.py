"""Online banking by login and confirmation."""

from sandbox.methods.base import Capabilities
from sandbox.methods.page import PageMethod


class BankRedirectDe(PageMethod):
    """The customer logs in and confirms (BRD-01)."""

    name = "bank-redirect-de"
    capabilities = Capabilities(default_expiration="PT60M", brand="bank-redirect-de")
