"""The common parts of all pages: headers, stylesheet, script and error pages."""

from collections.abc import Mapping
from typing import Any, Final

from werkzeug.wrappers import Response

from payment_sandbox.orders.refusals import Invalid, Refusal
from payment_sandbox.ui.pages.language import LANGUAGE_NAMES
from payment_sandbox.ui.pages.payer_page import LANGUAGE_COOKIE, chosen_language
from payment_sandbox.ui.templates import render, serve_assets
from payment_sandbox.web.auth import redirect_without_secrets, refuse_cross_site
from payment_sandbox.web.bodies import BODY_BYTES_MAX, body_length
from payment_sandbox.web.browsers import HTML, PAGE_HEADERS, csp_headers, is_browser
from payment_sandbox.web.call import Call
from payment_sandbox.web.error_answers import answer_for
from payment_sandbox.web.error_bodies import RequestRefused
from payment_sandbox.web.faces import RELEASE_WEBHOOKS, Face, Middleware, with_headers
from payment_sandbox.web.routes import RouteGroup

ICONS: Final = ("bank", "card", "later", "transfer", "wallet", "paid", "open", "failed")
# Not 'self': browsers also apply it to redirects after a post, so the shop's URL and any further redirects
# would be blocked.
HEADERS: Final = {**PAGE_HEADERS, **csp_headers("http: https:")}

PAGE_METADATA: Final[Mapping[str, Any]] = {
    "errors": (404,),
    "media_type": "text/html",
    "without_body": (303,),
}
FORM_FACTS: Final[Mapping[str, Any]] = {"status": 303, "errors": (403, 404), "media_type": "text/html"}

pages = RouteGroup("pages")


def refuse_foreign_posts(call: Call) -> None:
    """Refuse posts from other sites' pages, and forms that are too large."""
    if call.request.method == "POST":
        if body_length(call.request) > BODY_BYTES_MAX:
            raise RequestRefused(413, f"a form must not exceed {BODY_BYTES_MAX} bytes")
        refuse_cross_site(call)


def store_chosen_language(call: Call, response: Response) -> Response:
    """Remember the chosen language in a cookie."""
    chosen = call.request.args.get("language")
    if chosen in LANGUAGE_NAMES:
        page = "/".join(call.request.path.split("/")[:4])  # each order or QR code has its own language
        path, is_secure = f"{call.site.base_path}{page}", call.request.is_secure
        response.set_cookie(
            LANGUAGE_COOKIE, chosen, path=path, httponly=True, samesite="Lax", secure=is_secure
        )
    return response


def answer_error(call: Call, error: Exception) -> Response:
    """Answer refusals with a page for browsers and with JSON for other clients."""
    answer = answer_for(call, error)
    if not isinstance(error, Refusal | Invalid | RequestRefused) or not is_browser(call.request):
        return answer
    language = chosen_language(call, None)
    kind = "nothing" if answer.status_code == 404 else "refused"
    body = render(
        call,
        "refused.html",
        say=language.say,
        language=language,
        languages=LANGUAGE_NAMES,
        kind=kind,
        page=None,
        look="pay",
        why=answer.get_json()["error"]["value"],
    )
    return Response(body, status=answer.status_code, content_type=HTML)


MIDDLEWARES: Final = (
    with_headers(HEADERS),
    Middleware(after=store_chosen_language),
    Middleware(refuse_foreign_posts),
    Middleware(redirect_without_secrets),
    RELEASE_WEBHOOKS,
)
FACE: Final = Face(pages, MIDDLEWARES, answer_error)

serve_assets(pages, "/assets/", "pages", ("pay.css", "pay.js", *(f"{name}.svg" for name in ICONS)))
