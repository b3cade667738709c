"""Idempotency: a retried request gets the first response, and changes nothing (A57).

PostgreSQL commits the response together with the change, so that neither exists without the other; with
other stores, the response is in memory. The id of a request is its ``Idempotency-Key``. On PostgreSQL, a
request without a key gets an id, reported in errors with an unknown outcome.
"""

import json
from collections.abc import Mapping
from hashlib import sha256
from secrets import token_hex
from typing import Any, Final

from flask import Response

from payment_sandbox.orders.order import Order
from payment_sandbox.orders.refusals import KeyReused
from payment_sandbox.projects.caller import TrackedRequest
from payment_sandbox.projects.edit import Edit
from payment_sandbox.projects.project import Project
from payment_sandbox.web.answers.order_tables import ORDER, order_record
from payment_sandbox.web.answers.qr_tables import QR, qr_record
from payment_sandbox.web.answers.transaction_tables import TRANSACTION, transaction_record
from payment_sandbox.web.bodies import BODY_BYTES_MAX, json_line
from payment_sandbox.web.call import SAFE_METHODS, Call
from payment_sandbox.web.error_bodies import RequestRefused
from payment_sandbox.web.routes import Facts

KEY_HEADER: Final = "Idempotency-Key"
REPLAYED_HEADER: Final = "Idempotency-Replayed"
KEY_LENGTH_MAX: Final = 255


def replay_or_track(call: Call) -> Response | None:
    """Return the response of an already executed request; track a new request.

    Raises:
        KeyReused: another request used this key.
        RequestRefused: 400, the key has a wrong length.
    """
    request, project = call.request, call.project
    key = request.headers.get(KEY_HEADER)
    if request.method in SAFE_METHODS or (key is None and not project.epoch.store.is_shared):
        return None
    if key is not None and not 0 < len(key) <= KEY_LENGTH_MAX:
        raise RequestRefused(400, f"{KEY_HEADER} must have 1 to {KEY_LENGTH_MAX} characters")
    if key is not None:
        known = project.storage.answer(project, key)
        if known is not None:
            return _replay(call, json.loads(known))
    request_id, is_named = key or token_hex(16), key is not None
    call.tracked = TrackedRequest(request_id, lambda edit: _answer(call, edit), is_named=is_named)
    return None


def _replay(call: Call, stored: dict[str, Any]) -> Response:
    if stored["of"] != _fingerprint(call):
        raise KeyReused(f"another request had this {KEY_HEADER}: {stored['of']}")
    call.notes.order_id = stored["order_id"]
    headers = {REPLAYED_HEADER: "true"}
    if stored["etag"] is not None:
        headers["ETag"] = f'"{stored["etag"]}"'
    return Response(stored["body"], status=stored["status"], mimetype="application/json", headers=headers)


def _fingerprint(call: Call) -> str:
    """Summarize a request, to recognize a key reused for another request."""
    request = call.request
    is_read = (request.content_length or 0) <= BODY_BYTES_MAX
    body = sha256(request.get_data()).hexdigest()[:16] if is_read else ""
    return f"{request.method} {request.path} {body}".strip()


def _answer(call: Call, edit: Edit) -> str | None:
    """Serialize the response of a committed edit; None if the edit does not produce this response."""
    assert call.route is not None, "edits must come from views"
    project, facts = call.project, call.route.facts
    shown = _response_body(project, edit, facts, call.values)
    if shown is None:
        return None
    body, order = shown
    etag = project.epoch.etag(order) if order is not None and facts.answers is ORDER.shape else None
    if order is not None and etag is not None:
        call.rendered = (order, body)
    return json.dumps(
        {
            "of": _fingerprint(call),
            "status": facts.status,
            "etag": etag,
            "order_id": order.id if order is not None else None,
            "body": body,
        }
    )


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
