"""The documentation, served by the sandbox."""

from payment_sandbox.ui.docs.docs_routes import FACE, show_unknown_path

__all__ = ["FACE", "show_unknown_path"]
