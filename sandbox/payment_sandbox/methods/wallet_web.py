"""A web wallet: login and confirmation."""

from payment_sandbox.methods.base import Capabilities
from payment_sandbox.methods.page import PageMethod


class WalletWeb(PageMethod):
    """The customer logs in and confirms (WWEB-01)."""

    name = "wallet-web"
    capabilities = Capabilities(default_expiration="PT30M", brand="wallet-web")
