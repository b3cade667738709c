"""What happens before and after the views of payment pages: headers, refusals, and error pages."""

from collections.abc import Mapping
from typing import Any, Final

from flask import Response, render_template

from payment_sandbox.orders.refusals import Invalid, Refusal
from payment_sandbox.ui.pages.language import LANGUAGE_NAMES
from payment_sandbox.ui.pages.payer_page import LANGUAGE_COOKIE, chosen_language
from payment_sandbox.ui.templates import asset_answer
from payment_sandbox.web.auth import redirect_without_secrets, refuse_cross_site
from payment_sandbox.web.bodies import BODY_BYTES_MAX, body_length
from payment_sandbox.web.browsers import HTML, PAGE_HEADERS, csp_headers, is_browser
from payment_sandbox.web.call import Call
from payment_sandbox.web.error_answers import answer_for
from payment_sandbox.web.error_bodies import RequestRefused
from payment_sandbox.web.releasing import release_webhooks
from payment_sandbox.web.routes import stated

ICONS: Final = ("bank", "card", "later", "transfer", "wallet", "paid", "open", "failed")
ASSETS: Final = ("pay.css", "pay.js", *(f"{name}.svg" for name in ICONS))
# Not 'self': browsers also apply it to redirects after a post, so the shop's URL and any further redirects
# would be blocked.
HEADERS: Final = {**PAGE_HEADERS, **csp_headers("http: https:")}

PAGE_METADATA: Final[Mapping[str, Any]] = {
    "group": "pages",
    "errors": (404,),
    "media_type": "text/html",
    "without_body": (303,),
}
FORM_FACTS: Final[Mapping[str, Any]] = {
    "group": "pages",
    "status": 303,
    "errors": (403, 404),
    "media_type": "text/html",
}


def admit_call(call: Call) -> Response | None:
    """Refuse posts from other sites' pages, and forms that are too large; redirect without secrets.

    Raises:
        RequestRefused: 403 or 413.
    """
    if call.request.method == "POST":
        if body_length(call.request) > BODY_BYTES_MAX:
            raise RequestRefused(413, f"a form must not exceed {BODY_BYTES_MAX} bytes")
        refuse_cross_site(call)
    return redirect_without_secrets(call)


def finish_call(call: Call, response: Response) -> Response:
    """Release the webhooks of an action, remember the chosen language, and add the headers."""
    response = release_webhooks(call, response)
    chosen = call.request.args.get("language")
    if chosen in LANGUAGE_NAMES:
        page = "/".join(call.request.path.split("/")[:4])  # each order or QR code has its own language
        path, is_secure = f"{call.site.base_path}{page}", call.request.is_secure
        response.set_cookie(
            LANGUAGE_COOKIE, chosen, path=path, httponly=True, samesite="Lax", secure=is_secure
        )
    for name, value in HEADERS.items():
        response.headers.setdefault(name, value)
    return response


def answer_error(call: Call, error: Exception) -> Response:
    """Answer refusals with a page for browsers and with JSON for other clients."""
    answer = answer_for(call, error)
    if not isinstance(error, Refusal | Invalid | RequestRefused) or not is_browser(call.request):
        return answer
    language = chosen_language(call, None)
    kind = "nothing" if answer.status_code == 404 else "refused"
    body = render_template(
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


@stated(group="pages", media_type="text/css", errors=(404,))
def get_asset(call: Call, name: str) -> Response:
    """Get a stylesheet, a script or an icon."""
    return asset_answer("pages", ASSETS, name)
