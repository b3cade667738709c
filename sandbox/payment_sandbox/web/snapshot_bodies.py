"""Snapshots as bodies, which are larger than other bodies; one that could not be restored is not sent."""

from typing import Any, Final

from flask import Response

from payment_sandbox.projects.project import Project
from payment_sandbox.storage import snapshot
from payment_sandbox.web.answers.responses import encode_items, streamed_answer
from payment_sandbox.web.bodies import (
    STATE_BYTES_MAX,
    count_separators,
    parse,
    raw_body,
    refuse_other_types,
)
from payment_sandbox.web.call import Call
from payment_sandbox.web.error_bodies import RequestRefused

STATE_VALUES_MAX: Final = 1_000_000  # an order with its webhooks has 100 to 200
TOO_LARGE: Final = (
    f"the project is too large for a snapshot, which has at most {STATE_BYTES_MAX >> 20} MiB and"
    f" {STATE_VALUES_MAX:,} values"
)


def snapshot_text(call: Call) -> bytes:
    """Read the request's body, which is a snapshot.

    Raises:
        RequestRefused: see ``bodies.json_body``.
    """
    body = raw_body(call, STATE_BYTES_MAX)
    refuse_other_types(call, body)
    return body


def restore_text(project: Project, text: bytes) -> None:
    """Restore a snapshot.

    Raises:
        RequestRefused: see ``parse_snapshot``.
        Invalid: see ``snapshot.restore``.
    """
    snapshot.restore(project, parse_snapshot(text))


def parse_snapshot(body: bytes) -> Any:
    """Parse a snapshot strictly.

    Raises:
        RequestRefused: 413, too many values; 400, see ``bodies.parse``.
    """
    if count_separators(body) > STATE_VALUES_MAX:
        raise RequestRefused(413, f"the snapshot has more than {STATE_VALUES_MAX:,} values")
    return parse(body, STATE_VALUES_MAX)


def snapshot_answer(project: Project) -> Response:
    """Build a response with a snapshot.

    Raises:
        RequestRefused: 413, the snapshot could not be restored, because it is too large.
    """
    encode_parts = snapshot.capture(project)
    values = length = 0
    for piece in encode_items(encode_parts()):
        values, length = values + count_separators(piece.encode()), length + len(piece)
        if values > STATE_VALUES_MAX or length > STATE_BYTES_MAX:
            raise RequestRefused(413, TOO_LARGE)
    return streamed_answer(encode_parts())
