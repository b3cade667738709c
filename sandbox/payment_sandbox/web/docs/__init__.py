"""The documentation, served by the sandbox."""

from payment_sandbox.web.docs.views import FACE, show_unknown_path

__all__ = ["FACE", "show_unknown_path"]
