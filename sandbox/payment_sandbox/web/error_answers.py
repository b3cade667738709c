"""Responses to refused and failed calls."""

import json
import logging
import re
from typing import Any, Final

from flask import Response
from werkzeug.exceptions import HTTPException

from payment_sandbox.extensions import missing_library
from payment_sandbox.kernel.ids import TOKEN_PATTERN
from payment_sandbox.kernel.masking import MASK, mask
from payment_sandbox.operations.wait import WaitTimedOut
from payment_sandbox.orders.refusals import Invalid, Refusal
from payment_sandbox.projects.caller import AlreadyAnswered
from payment_sandbox.projects.registry import Registry
from payment_sandbox.projects.store import NotStored
from payment_sandbox.web.call import Call
from payment_sandbox.web.error_bodies import (
    APIS,
    MERCHANT_PATHS,
    NO_PATH,
    NOT_FOUND,
    TYPE_BY_STATUS,
    RequestRefused,
    error_body,
    status_and_type,
)
from payment_sandbox.web.idempotency import replayed_answer

VIOLATIONS_SHOWN_MAX: Final = 3
WORD_LENGTH_MIN: Final = 6
WORDS_MAX: Final = 50
UNAUTHORIZED: Final = 401
_KEY_LIKE: Final = re.compile(r"[!#-&(-.0-9;-~]+")
GENERATED_KEY: Final = re.compile(f"(?<![0-9a-f]){TOKEN_PATTERN}(?![0-9a-f])")

log = logging.getLogger(__name__)


def answer_for(call: Call, error: Exception) -> Response:
    """Build the JSON response to an exception."""
    if isinstance(error, AlreadyAnswered):
        return replayed_answer(call, error.answer)
    if isinstance(error, Invalid):
        return _on_invalid(call, error)
    if isinstance(error, Refusal):
        return _on_refusal(call, error)
    if isinstance(error, RequestRefused):
        return refusal_answer(call, error)
    if isinstance(error, NotStored):
        log.error("%s", error)
        status = 507 if error.is_full else 503
        return _respond(call, error_body(status, TYPE_BY_STATUS[status], str(error)), {"Retry-After": "1"})
    if isinstance(error, HTTPException):
        return _on_http(call, error)
    if isinstance(error, ModuleNotFoundError):
        return refusal_answer(call, RequestRefused(501, str(missing_library(error))))
    log.exception("a request could not be answered", exc_info=error)
    return _respond(call, error_body(500, "InternalServerError", "the sandbox failed; see its log"))


def refusal_answer(call: Call, refused: RequestRefused) -> Response:
    """Build the response to a request refused before processing."""
    kind = TYPE_BY_STATUS.get(refused.status, "Refused")
    if call.owner is None:
        report_refused(call, refused.status, refused.value)
        if refused.status == UNAUTHORIZED and call.request.path.startswith(MERCHANT_PATHS):
            path = mask(without_keys(call.site.registry, call.request.path))
            sentence = f"{call.request.method} {path} -> {UNAUTHORIZED}: {refused.value}"
            call.site.refused.append((call.site.registry.services.real.wall_now(), sentence))
    return _respond(call, error_body(refused.status, kind, refused.value), refused.headers)


def report_refused(call: Call, status: int, value: str) -> None:
    """Report a refused request, which no journal records, to the server's observer."""
    on_refused, registry = call.site.server_context.on_refused, call.site.registry
    if on_refused is not None:
        path, value = without_keys(registry, call.request.path), without_keys(registry, value)
        on_refused(call.request.method, path, status, value)


def find_known_keys(registry: Registry, text: str) -> list[str]:
    """Find API keys of any project in a text; at most ``WORDS_MAX`` words are looked up."""
    words = [word for word in _KEY_LIKE.findall(text) if len(word) >= WORD_LENGTH_MIN]
    generated = GENERATED_KEY.findall(text)
    candidates = list(dict.fromkeys([*generated, *words]))
    try:
        return list(filter(registry.is_known, candidates[:WORDS_MAX]))
    except NotStored:  # the lookup failed, so every generated key counts as known
        return generated


def without_keys(registry: Registry, text: str) -> str:
    """Remove API keys from a text, for calls whose project, and therefore its masking, is unknown."""
    for key in find_known_keys(registry, text):
        text = text.replace(key, MASK)
    return text


def _respond(call: Call, body: dict[str, Any], headers: dict[str, str] | None = None) -> Response:
    body = call.masking.mask_record(body)
    if call.owner is None:
        body = json.loads(without_keys(call.site.registry, json.dumps(body)))
    return Response(
        f"{json.dumps(body)}\n", status=body["error"]["status"], mimetype="application/json", headers=headers
    )


def _on_invalid(call: Call, invalid: Invalid) -> Response:
    call.notes.violations = invalid.violations
    shown = "; ".join(
        f"{violation.path or 'the request'} {violation.message}"
        for violation in invalid.violations[:VIOLATIONS_SHOWN_MAX]
    )
    more = len(invalid.violations) - VIOLATIONS_SHOWN_MAX
    value = f"{shown}; and {more} more" if more > 0 else shown
    return _respond(call, error_body(400, "ValidationError", value, invalid.violations))


def _on_refusal(call: Call, refusal: Refusal) -> Response:
    kind = type(refusal)
    call.notes.rule = refusal.rule
    body = error_body(*status_and_type(kind), str(refusal), allowed=refusal.allowed)
    if isinstance(refusal, WaitTimedOut):
        body["error"]["now"] = dict(refusal.now)
    return _respond(call, body)


def _on_http(call: Call, error: HTTPException) -> Response:
    status = error.code or 500
    kind = TYPE_BY_STATUS.get(status, type(error).__name__)
    headers = {name: value for name, value in error.get_headers() if name in ("Allow", "WWW-Authenticate")}
    value = error.description or error.name
    if status == NOT_FOUND and value == type(error).description:
        value = NO_PATH
        if not call.request.path.startswith(APIS):
            value += "; paths of the APIs begin with /v1/ and /control/"
    elif status == 405:
        allowed = headers["Allow"] = ", ".join(sorted(headers.get("Allow", "").split(", ")))  # from a set
        value = f"this path does not allow that method; it allows {allowed}"
    return _respond(call, error_body(status, kind, value), headers)
