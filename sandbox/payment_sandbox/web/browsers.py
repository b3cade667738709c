"""What the payment pages and the documentation share."""

from typing import Final

from flask import request

HTML: Final = "text/html; charset=utf-8"


def is_browser() -> bool:
    """Whether the caller prefers HTML to JSON."""
    return request.accept_mimetypes.best_match(["application/json", "text/html"]) == "text/html"
