"""The documentation, and the description of the APIs: its views are imported when they are first needed."""

from collections.abc import Callable
from typing import Final

from flask import Blueprint, Response

from payment_sandbox.web.browsers import is_browser
from payment_sandbox.web.call import Call
from payment_sandbox.web.error_bodies import CONTROL_API
from payment_sandbox.web.routes import LazyView, add_lazy_routes, add_lazy_surroundings

VIEWS: Final = (
    ("GET", "/docs/", "docs_routes.get_first_page"),
    ("GET", "/docs/assets/<name>", "docs_routes.get_asset"),
    ("GET", "/docs/<name>.md", "docs_routes.get_page_as_markdown"),
    ("GET", "/docs/<name>/", "docs_routes.get_page"),
    ("GET", "/llms.txt", "docs_routes.get_overview"),
    ("GET", "/openapi.json", "docs_routes.get_openapi"),
)

docs = Blueprint("docs", __name__)
add_lazy_routes(docs, __name__, VIEWS)
add_lazy_surroundings(docs, f"{__name__}.docs_routes")
nothing_page: Final[Callable[[], Response]] = LazyView(f"{__name__}.docs_routes.nothing_page")


def show_unknown_path(call: Call) -> Response | None:
    """Show browsers a page with links for an unknown path; return None for programs."""
    if not is_browser(call.request) or call.request.path.startswith(CONTROL_API):
        return None
    return nothing_page()
