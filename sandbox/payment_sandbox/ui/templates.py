"""The templates and the assets of all pages."""

from functools import cache
from typing import Any, Final

from jinja2 import Environment, FunctionLoader
from werkzeug.wrappers import Response

from payment_sandbox.orders.refusals import Unknown
from payment_sandbox.packaged import read_packaged
from payment_sandbox.web.call import Call
from payment_sandbox.web.routes import RouteGroup, route

CACHE_HEADERS: Final = {"Cache-Control": "max-age=3600"}
MEDIA_TYPES: Final = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}


def _read_template(name: str) -> str | None:
    room = name.partition("/")[0]
    folder = room if room in ("dashboard", "docs") else "pages"
    try:
        return read_packaged(f"ui/{folder}/templates/{name}").decode()
    except OSError:
        return None


TEMPLATES: Final = Environment(loader=FunctionLoader(_read_template), autoescape=True, auto_reload=False)


def render(call: Call, template: str, **context: Any) -> str:
    """Render a template."""
    return TEMPLATES.get_template(template).render(base=call.site.base_path, **context)


def serve_assets(group: RouteGroup, path: str, folder: str, names: tuple[str, ...]) -> None:
    """Add the route of the assets in a folder."""

    @cache
    def read(name: str) -> bytes:
        return read_packaged(f"ui/{folder}/assets/{name}")

    @route(group, "GET", f"{path}<name>", media_type="text/css", errors=(404,))
    def get_asset(call: Call, name: str) -> Response:
        """Get a stylesheet, a script or an icon."""
        if name not in names:
            raise Unknown(f"there is no asset {name!r}")
        media_type = MEDIA_TYPES[name.rpartition(".")[2]]
        return Response(read(name), mimetype=media_type, headers=CACHE_HEADERS)
