"""The templates and the assets of all pages."""

from functools import cache
from typing import Final

from flask import Response
from jinja2 import FunctionLoader

from payment_sandbox.orders.refusals import Unknown
from payment_sandbox.packaged import read_packaged

CACHE_HEADERS: Final = {"Cache-Control": "max-age=3600"}
MEDIA_TYPES: Final = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}


def _read_template(name: str) -> str | None:
    room = name.partition("/")[0]
    folder = room if room in ("dashboard", "docs") else "pages"
    try:
        return read_packaged(f"ui/{folder}/templates/{name}").decode()
    except OSError:
        return None


template_loader: Final = FunctionLoader(_read_template)


@cache
def _read_asset(path: str) -> bytes:
    return read_packaged(path)


def asset_answer(folder: str, names: tuple[str, ...], name: str) -> Response:
    """Build a response with an asset of a folder.

    Raises:
        Unknown: it is not one of the ``names``.
    """
    if name not in names:
        raise Unknown(f"there is no asset {name!r}")
    media_type = MEDIA_TYPES[name.rpartition(".")[2]]
    return Response(_read_asset(f"ui/{folder}/assets/{name}"), mimetype=media_type, headers=CACHE_HEADERS)
