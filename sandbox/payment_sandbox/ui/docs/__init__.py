"""The documentation, served by the sandbox."""

from payment_sandbox.ui.docs.docs_routes import DESCRIPTION, FACE, show_unknown_path

__all__ = ["DESCRIPTION", "FACE", "show_unknown_path"]
