"""The shape of every 4xx and 5xx, and the status of each refusal."""

import logging
import re
from collections.abc import Callable, Sequence
from typing import Any, Final

from flask import Flask, Response, json, request
from werkzeug.exceptions import HTTPException

from payment_sandbox.kernel.masking import MASK, Masking
from payment_sandbox.operations.wait import WaitTimedOut
from payment_sandbox.orders import refusals
from payment_sandbox.orders.refusals import Invalid, Refusal, Violation
from payment_sandbox.projects.quotas import QuotaReached
from payment_sandbox.storage.codec import NotStored
from payment_sandbox.web.carried import exchange

STATUS_OF: Final = {
    refusals.Unknown: 404,
    refusals.Stale: 412,
    WaitTimedOut: 408,
    QuotaReached: 507,
}
CONFLICT: Final = 409
NOT_FOUND: Final = 404
MERCHANT_API: Final = "/v1"
APIS: Final = (MERCHANT_API, "/control")
TYPE_OF: Final = {
    refusals.Unknown: "NotFound",
    refusals.Stale: "PreconditionFailed",
    WaitTimedOut: "RequestTimeout",
    QuotaReached: "InsufficientStorage",
}
TYPE_OF_STATUS: Final = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    405: "MethodNotAllowed",
    408: "RequestTimeout",
    412: "PreconditionFailed",
    413: "RequestEntityTooLarge",
    415: "UnsupportedMediaType",
    429: "RateLimited",
    431: "RequestHeaderFieldsTooLarge",
    500: "InternalServerError",
    501: "NotImplemented",
    502: "BadGateway",
    503: "ServiceUnavailable",
    504: "GatewayTimeout",
    507: "InsufficientStorage",
}

WORD_LENGTH_MIN: Final = 6
WORDS_MAX: Final = 50
_KEY_LIKE: Final = re.compile(r"[!#-&(-.0-9;-~]+")
GENERATED_KEY: Final = re.compile("(?<![0-9a-f])[0-9a-f]{32}(?![0-9a-f])")

log = logging.getLogger(__name__)


class RequestRefused(Exception):
    """A request refused before any business rule applies, for its format, size or sender."""

    def __init__(self, status: int, value: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(value)
        self.status = status
        self.value = value
        self.headers = headers or {}


def error_body(
    status: int,
    kind: str,
    value: str,
    violations: Sequence[Violation] = (),
    allowed: Sequence[str] | None = None,
) -> dict[str, Any]:
    """An error body; all errors have this shape (SET-03)."""
    error: dict[str, Any] = {
        "status": status,
        "type": kind,
        "value": value,
        "violations": [_violation(violation) for violation in violations],
    }
    if allowed is not None:
        error["allowed"] = list(allowed)
    return {"error": error}


def _violation(violation: Violation) -> dict[str, Any]:
    shown: dict[str, Any] = {"path": violation.path, "message": violation.message}
    place = violation._asdict()
    shown.update({key: place[key] for key in ("nearest", "file", "line", "column") if place[key] is not None})
    if violation.allowed is not None:
        shown["allowed"] = list(violation.allowed)
    return shown


def _answer(body: dict[str, Any], headers: dict[str, str] | None = None) -> Response:
    body = masking().record(body)
    if exchange().project is None:
        body = json.loads(_without_keys(json.dumps(body)))
    return Response(
        f"{json.dumps(body)}\n", status=body["error"]["status"], mimetype="application/json", headers=headers
    )


def masking() -> Masking:
    """Masks the secrets of this request's project: errors repeat what was sent."""
    project = exchange().project
    return project.masking if project is not None else Masking()


def _on_invalid(invalid: Invalid) -> Response:
    exchange().violations = invalid.violations
    shown = "; ".join(
        f"{violation.path or 'the request'} {violation.message}" for violation in invalid.violations[:3]
    )
    more = len(invalid.violations) - 3
    value = f"{shown}; and {more} more" if more > 0 else shown
    return _answer(error_body(400, "ValidationError", value, invalid.violations))


def status_of(kind: type[Refusal]) -> int:
    """The HTTP status of a kind of refusal."""
    return STATUS_OF.get(kind, CONFLICT)


def _on_refusal(refusal: Refusal) -> Response:
    kind = type(refusal)
    exchange().rule = refusal.rule
    status = status_of(kind)
    body = error_body(status, TYPE_OF.get(kind, kind.__name__), str(refusal), allowed=refusal.allowed)
    if isinstance(refusal, WaitTimedOut):
        body["error"]["now"] = dict(refusal.now)
    return _answer(body)


def refused_answer(refused: RequestRefused) -> Response:
    """The response to a request that is refused before it is processed."""
    kind = TYPE_OF_STATUS.get(refused.status, "Refused")
    if exchange().project is None:
        tell_refused(refused.status, refused.value)
    return _answer(error_body(refused.status, kind, refused.value), refused.headers)


def tell_refused(status: int, value: str) -> None:
    """Tell who watches the server of a request that no journal has."""
    state = exchange().application
    if state.around.on_refused is not None:
        state.around.on_refused(request.method, _without_keys(request.path), status, _without_keys(value))


def _without_keys(text: str) -> str:
    """A text without API keys: where the project is not known, its masking cannot be, either."""
    for key in known_keys(text):
        text = text.replace(key, MASK)
    return text


def known_keys(text: str) -> list[str]:
    """The API keys in a text, of whatever project; only some words are looked up: it may take a database."""
    words = [word for word in _KEY_LIKE.findall(text) if len(word) >= WORD_LENGTH_MIN]
    generated = GENERATED_KEY.findall(text)
    candidates = list(dict.fromkeys([*generated, *words]))
    try:
        return list(filter(exchange().application.registry.is_known, candidates[:WORDS_MAX]))
    except NotStored:  # nobody can be asked; what looks like a key may be one
        return generated


def _on_http(error: HTTPException) -> Response:
    status = error.code or 500
    kind = TYPE_OF_STATUS.get(status, type(error).__name__)
    headers = {name: value for name, value in error.get_headers() if name in ("Allow", "WWW-Authenticate")}
    value = error.description or error.name
    if status == NOT_FOUND:
        value = "there is nothing at this path"
        if not request.path.startswith(APIS):
            value += "; the calls of the APIs begin with /v1/ and /control/"
    elif status == 405:
        value = f"this path does not allow that method; it allows {headers.get('Allow', 'others')}"
    return _answer(error_body(status, kind, value), headers)


def _on_crash(error: Exception) -> Response:
    log.exception("a request could not be answered", exc_info=error)
    return _answer(error_body(500, "InternalServerError", "the sandbox failed; see its log"))


def _on_not_stored(failed: NotStored) -> Response:
    log.error("%s", failed)
    status = 507 if failed.is_full else 503
    return _answer(error_body(status, TYPE_OF_STATUS[status], str(failed)), {"Retry-After": "1"})


def answer_for(error: Exception) -> Response:
    """The JSON error response to an exception, for error handlers that also render pages."""
    if isinstance(error, Invalid):
        return _on_invalid(error)
    if isinstance(error, Refusal):
        return _on_refusal(error)
    assert isinstance(error, RequestRefused), "no other errors get here"
    return refused_answer(error)


def install(
    app: Flask, keep_unrouted: Callable[[Response], Response], show_nothing: Callable[[], Response | None]
) -> None:
    """Answer every error in the same shape.

    ``keep_unrouted`` gets merchant calls that match no route. ``show_nothing`` makes a page for browsers
    where there is nothing; None for other clients.
    """

    def on_http(error: HTTPException) -> Response:
        if request.path.startswith(MERCHANT_API):
            return keep_unrouted(_on_http(error))
        page = show_nothing() if error.code == NOT_FOUND else None
        return page or _on_http(error)

    app.register_error_handler(Invalid, _on_invalid)
    app.register_error_handler(Refusal, _on_refusal)
    app.register_error_handler(RequestRefused, refused_answer)
    app.register_error_handler(NotStored, _on_not_stored)
    app.register_error_handler(HTTPException, on_http)
    app.register_error_handler(Exception, _on_crash)
