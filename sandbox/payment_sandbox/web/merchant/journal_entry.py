"""The journal entry of each call."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from flask import Response

from payment_sandbox.projects.journal import (
    JOURNAL_BODY_BYTES,
    MASKING_MARGIN,
    PATH_LENGTH_MAX,
    TEST,
    JournalEntry,
    without_secret_headers,
)
from payment_sandbox.projects.project import Project
from payment_sandbox.web.bodies import BODY_BYTES_MAX
from payment_sandbox.web.call import Call
from payment_sandbox.web.faces import CallNext

PATH_STORED_MAX: Final = PATH_LENGTH_MAX + MASKING_MARGIN
BODY_STORED_BYTES: Final = JOURNAL_BODY_BYTES + MASKING_MARGIN


def journal_call(call: Call, call_next: CallNext) -> Response:
    """Write the journal entry, which is the cause of all changes made by the call."""
    project = call.project
    journal = project.epoch.journal
    entry_id = call.cause = journal.next_id("request")
    response = call_next(call)
    if not call.is_from_test:
        # After a reset, the id may belong to another record.
        is_reset = project.epoch.journal is not journal
        add_entry(call, project, response, None if is_reset else entry_id)
    return response


def add_entry(call: Call, project: Project, response: Response, entry_id: str | None = None) -> None:
    """Add a call and its response to the journal, by default under the next id."""
    request, notes, journal = call.request, call.notes, project.epoch.journal
    answered_at = project.services.real.wall_now()
    order_id = notes.order_id or call.values.get("order_id", "")[:PATH_STORED_MAX] or None
    entry = JournalEntry(
        id=entry_id or journal.next_id("request"),
        at=project.epoch.now(),
        method=request.method,
        path=request.path[:PATH_STORED_MAX],
        query=request.query_string[:PATH_STORED_MAX].decode(errors="replace"),
        status=notes.lost_status if notes.is_cut else response.status_code,
        request=_request_body(call),
        response=b"" if response.is_streamed else response.get_data()[:BODY_STORED_BYTES],
        ignored=notes.ignored,
        rule=notes.rule,
        fault=notes.fault,
        real_at=call.real_at or answered_at,
        answered_at=answered_at,
        request_headers=without_secret_headers(_headers(call)),
        response_headers=response.headers,
        transaction_id=notes.transaction_id,
        order_id=order_id,
        unknown=notes.unknown,
        warnings=notes.warnings,
        caller=TEST if call.request.headers.get("Sandbox-Caller") == "trigger" else call.connection.caller,
    )
    journal.add([entry])


def _headers(call: Call) -> Iterable[tuple[bytes, bytes]]:
    """Return the raw headers of a request, or those in its WSGI environment for an in-process call."""
    if call.connection.headers is not None:
        return call.connection.headers
    environ: Mapping[str, Any] = call.request.environ
    return [
        (name.removeprefix("HTTP_").replace("_", "-").encode(), value.encode("latin-1"))
        for name, value in environ.items()
        if name.startswith("HTTP_") or name == "CONTENT_TYPE"
    ]


def _request_body(call: Call) -> bytes:
    request = call.request
    if request.method == "GET" or not request.content_length or request.content_length > BODY_BYTES_MAX:
        return b""
    if "HTTP_CONTENT_ENCODING" in request.environ:  # such a request is refused, and its body cannot be read
        return b""
    return request.get_data()[:BODY_STORED_BYTES]
