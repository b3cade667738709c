"""The documentation, which the sandbox serves itself."""

from payment_sandbox.web.docs.views import FACE, show_nothing

__all__ = ["FACE", "show_nothing"]
