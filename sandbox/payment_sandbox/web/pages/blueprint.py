"""What all pages share: headers, stylesheet, script and error pages."""

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any, Final

from flask import Blueprint, Response, render_template, request

from payment_sandbox.orders.refusals import Invalid, Refusal, Unknown
from payment_sandbox.web.addresses import base_path
from payment_sandbox.web.after import release_webhooks
from payment_sandbox.web.auth import drop_secrets, refuse_strangers
from payment_sandbox.web.bodies import BODY_BYTES_MAX
from payment_sandbox.web.browsers import HTML, PAGE_HEADERS, is_browser, policy
from payment_sandbox.web.errors import RequestRefused, answer_for
from payment_sandbox.web.pages.language import NAMES
from payment_sandbox.web.pages.payer_page import LANGUAGE_COOKIE, chosen_language
from payment_sandbox.web.routes import route

ICONS: Final = ("bank", "card", "later", "transfer", "wallet", "paid", "open", "failed")
ASSETS: Final = {
    "pay.css": "text/css",
    "pay.js": "text/javascript",
    **{f"{name}.svg": "image/svg+xml" for name in ICONS},
}
ASSET_SECONDS: Final = 3600
# Not 'self': browsers also apply it to redirects after a post, so the shop's URL and any further redirects
# would be blocked.
HEADERS: Final = {**PAGE_HEADERS, **policy("http: https:")}

PAGE: Final[Mapping[str, Any]] = {"errors": (404,), "media_type": "text/html", "without_body": (303,)}
POSTED: Final[Mapping[str, Any]] = {"status": 303, "errors": (403, 404), "media_type": "text/html"}

pages = Blueprint("pages", __name__, template_folder="templates")


@pages.context_processor
def where() -> dict[str, str]:
    """The path prefix of the stylesheet and the script, for templates."""
    return {"base": base_path()}


@pages.before_request
def refuse_foreign_posts() -> None:
    """Refuse posts from other sites' pages, and forms that are too large."""
    if request.method != "POST":
        return
    if (request.content_length or 0) > BODY_BYTES_MAX:
        raise RequestRefused(413, f"a form is at most {BODY_BYTES_MAX} bytes")
    refuse_strangers()


pages.before_request(drop_secrets)


@pages.after_request
def secure(response: Response) -> Response:
    """Set security headers, and remember the chosen language in a cookie."""
    for name, value in HEADERS.items():
        response.headers.setdefault(name, value)
    asked = request.args.get("language")
    if asked in NAMES:
        place, is_secure = _place(), request.is_secure
        response.set_cookie(
            LANGUAGE_COOKIE, asked, path=place, httponly=True, samesite="Lax", secure=is_secure
        )
    return response


def _place() -> str:
    """The path of the order or code whose language was chosen: other orders have their own."""
    return f"{base_path()}{'/'.join(request.path.split('/')[:4])}"


@pages.errorhandler(Refusal)
@pages.errorhandler(Invalid)
@pages.errorhandler(RequestRefused)
def refuse(error: Exception) -> Response:
    """Answer errors with a page for browsers and with JSON for other clients."""
    answer = answer_for(error)
    if not is_browser():
        return answer
    language = chosen_language(None)
    kind = "nothing" if answer.status_code == 404 else "refused"
    body = render_template(
        "refused.html",
        say=language.say,
        language=language,
        languages=NAMES,
        kind=kind,
        page=None,
        look="pay",
        why=answer.get_json()["error"]["value"],
    )
    return Response(body, status=answer.status_code, content_type=HTML)


pages.after_request(release_webhooks)


@route(pages, "GET", "/assets/<name>", media_type="text/css", errors=(404,))
def get_asset(name: str) -> Response:
    """Get the stylesheet or the script."""
    if name not in ASSETS:
        raise Unknown(f"there is no asset {name!r}")
    headers = {"Cache-Control": f"max-age={ASSET_SECONDS}"}
    return Response(_asset(name), mimetype=ASSETS[name], headers=headers)


@cache
def _asset(name: str) -> bytes:
    return files("payment_sandbox.web.pages").joinpath("assets", name).read_bytes()
