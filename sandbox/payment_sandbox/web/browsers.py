"""Headers and redirects shared by the payment pages, the dashboard and the documentation."""

from collections.abc import Mapping
from typing import Final

from flask import Request, Response
from werkzeug.urls import iri_to_uri

HTML: Final = "text/html; charset=utf-8"
SEE_OTHER: Final = 303
PAGE_HEADERS: Final[Mapping[str, str]] = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    # Not no-referrer: browsers would then omit the Origin header that the guard needs.
    "Referrer-Policy": "same-origin",
    "Cache-Control": "no-store",
}
"""The security headers of pages with forms, in addition to ``csp_headers``."""


def csp_headers(form_action: str) -> Mapping[str, str]:
    """Build the header that limits a page to the sandbox's resources, and its forms to ``form_action``."""
    return {
        "Content-Security-Policy": (
            "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; "
            f"connect-src 'self'; form-action {form_action}; base-uri 'none'; frame-ancestors 'none'"
        )
    }


def redirect(address: str) -> Response:
    """Redirect a browser to a GET, with a 303."""
    return Response(status=SEE_OTHER, headers={"Location": iri_to_uri(address)}, content_type=HTML)


def is_browser(request: Request) -> bool:
    """Whether the caller prefers HTML to JSON."""
    return request.accept_mimetypes.best_match(["application/json", "text/html"]) == "text/html"
