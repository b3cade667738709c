"""What pages for people have in common, whichever face shows them."""

from typing import Final

from flask import request

HTML: Final = "text/html; charset=utf-8"


def is_browser() -> bool:
    """Whether the caller would rather have a page than JSON."""
    return request.accept_mimetypes.best_match(["application/json", "text/html"]) == "text/html"
