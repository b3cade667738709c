"""Idempotency: a repeated request gets the first answer, and changes nothing (A57).

The id of a request is its ``Idempotency-Key``. The commit of the request's effect also stores the answer,
which claims the key, so that neither exists without the other.
"""

from collections.abc import Mapping
from functools import partial
from hashlib import sha256
from typing import Final

from flask import Response

from payment_sandbox.orders.order import Order
from payment_sandbox.orders.refusals import KeyInUse
from payment_sandbox.projects.caller import SavedAnswer, TrackedRequest
from payment_sandbox.projects.edit import Edit
from payment_sandbox.projects.project import Project
from payment_sandbox.web.answers.order_tables import ORDER, order_record
from payment_sandbox.web.answers.qr_tables import QR, qr_record
from payment_sandbox.web.answers.transaction_tables import TRANSACTION, transaction_record
from payment_sandbox.web.bodies import BODY_BYTES_MAX, body_length, json_line, sent_body
from payment_sandbox.web.call import SAFE_METHODS, Call
from payment_sandbox.web.error_bodies import RequestRefused
from payment_sandbox.web.routes import Facts

KEY_HEADER: Final = "Idempotency-Key"
REPLAYED_HEADER: Final = "Idempotency-Replayed"
KEY_LENGTH_MAX: Final = 255


def claim_key(call: Call) -> None:
    """Let the call's edit claim the key of the request, after other calls with this key.

    Raises:
        AlreadyAnswered: the request was executed.
        KeyReused: another request used this key.
        KeyInUse: another call with this key has not finished.
        RequestRefused: 400, the key has a wrong length.
    """
    request = call.request
    key = request.environ.get("HTTP_IDEMPOTENCY_KEY")
    if request.method in SAFE_METHODS or key is None:
        return
    if not 0 < len(key) <= KEY_LENGTH_MAX:
        raise RequestRefused(400, f"{KEY_HEADER} must have 1 to {KEY_LENGTH_MAX} characters")
    is_read = body_length(request) <= BODY_BYTES_MAX
    body = sha256(sent_body(request)).hexdigest()[:16] if is_read else ""
    about = f"{request.method} {request.path} {body}".strip()  # recognizes a key of another request
    tracked = TrackedRequest(about, partial(_answer, call), key)
    monotonic_seconds = call.project.services.real.monotonic_seconds
    until_seconds = monotonic_seconds() + call.connection.repeat_seconds
    while call.tracked is None:
        epoch = call.project.epoch
        tracked.refuse_repeat(epoch.saved_answer(tracked.key_digest))
        other = tracked.begin(epoch.running_requests)
        if other is None:
            call.tracked = tracked
        elif not other.is_over.wait(until_seconds - monotonic_seconds()):
            raise KeyInUse(
                f"another request with this {KEY_HEADER} has not finished, so nothing was done; "
                "ask again with this key"
            )


def replayed_answer(call: Call, saved: SavedAnswer) -> Response:
    """Build the response of an executed request."""
    call.notes.order_id = saved.order_id
    headers = {REPLAYED_HEADER: "true"}
    if saved.etag is not None:
        headers["ETag"] = f'"{saved.etag}"'
    return Response(saved.body, status=saved.status, mimetype="application/json", headers=headers)


def _answer(call: Call, edit: Edit) -> SavedAnswer | None:
    """Build the answer to a committed edit; None if the edit does not produce the answer."""
    assert call.facts is not None, "edits must come from views"
    tracked = call.tracked
    assert tracked is not None, "the answer is that of a tracked request"
    project, facts = call.project, call.facts
    shown = _response_body(project, edit, facts, call.values)
    if shown is None:
        return None
    body, order = shown
    etag = project.epoch.etag(order) if order is not None and facts.answers is ORDER.shape else None
    if order is not None and etag is not None:
        call.rendered = (order, body)
    order_id = order.id if order is not None else None
    return SavedAnswer(tracked.key_digest, edit.now, tracked.of, facts.status, etag, order_id, body)


def _response_body(
    project: Project, edit: Edit, facts: Facts, values: Mapping[str, str]
) -> tuple[str, Order | None] | None:
    order = edit.newest_created or edit.orders.get(values.get("order_id", ""))
    if facts.answers is QR.shape and edit.newest_qr_request is not None:
        return json_line(qr_record(project, edit.newest_qr_request)), None
    if order is not None and facts.answers is ORDER.shape:
        return json_line(order_record(project, order)), order
    if order is not None and facts.answers is TRANSACTION.shape:
        transaction = order.transaction(values["transaction_id"])
        assert transaction is not None, "the edit must refuse unknown transactions"
        return json_line(transaction_record(project, order, transaction)), order
    return None
