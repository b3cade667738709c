"""The documentation, which the sandbox serves itself."""

from payment_sandbox.web.docs.views import docs, show_nothing

__all__ = ["docs", "show_nothing"]
