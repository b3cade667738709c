"""The shape of all 4xx and 5xx responses, and the status of each refusal."""

import re
from collections.abc import Iterable, Sequence
from typing import Any, Final

from werkzeug.exceptions import HTTPException, NotFound

from payment_sandbox.forms.base import nearest_word
from payment_sandbox.operations.wait import WaitTimedOut
from payment_sandbox.orders import refusals
from payment_sandbox.orders.refusals import Refusal, Violation

STATUS_BY_REFUSAL: Final = {
    refusals.Unknown: 404,
    refusals.OrderChanged: 412,
    WaitTimedOut: 408,
}
CONFLICT: Final = 409
NOT_FOUND: Final = 404
MERCHANT_API: Final = "/v1"
MERCHANT_PATHS: Final = f"{MERCHANT_API}/"
"""The beginning of the paths of the merchant API."""
CONTROL_API: Final = "/control"
APIS: Final = (MERCHANT_API, CONTROL_API)
NO_PATH: Final = "this path does not exist"
GUESSED_LENGTH_MAX: Final = 200
TYPE_BY_STATUS: Final = {
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


class RequestRefused(Exception):
    """A request refused for its format, size or sender, before any business rule applies."""

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
    """Build an error body; all errors have this shape (SET-03)."""
    shown = [
        {key: part for key, part in each._asdict().items() if part is not None and key != "rule"}
        for each in violations
    ]
    error = {"status": status, "type": kind, "value": value, "violations": shown}
    return {"error": error if allowed is None else {**error, "allowed": list(allowed)}}


def status_and_type(kind: type[Refusal]) -> tuple[int, str]:
    """Return the HTTP status and the error type of a kind of refusal."""
    status = STATUS_BY_REFUSAL.get(kind, CONFLICT)
    return status, TYPE_BY_STATUS.get(status, kind.__name__)


def name_nearest_path(error: HTTPException, path: str, known: Iterable[str]) -> HTTPException:
    """Name the known path whose parts resemble those of an unknown path, if there is one."""
    sent = path.rstrip("/").split("/")
    if len(path) > GUESSED_LENGTH_MAX:
        return error
    for rule in known:
        words = rule.rstrip("/").split("/")
        if len(words) == len(sent) and all(
            word.startswith("<") or word == each or nearest_word(each, [word])
            for word, each in zip(words, sent, strict=True)
        ):
            nearest = re.sub("<(.+?)>", r"{\1}", rule)
            return NotFound(f"{NO_PATH}; did you mean {nearest}?")
    return error
