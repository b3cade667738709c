"""The blueprint of the merchant API: what surrounds its views, and the journal entry of a call."""

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any, Final

from flask import Blueprint, Response, g
from werkzeug.exceptions import HTTPException, NotFound

from payment_sandbox.kernel.masking import Masking
from payment_sandbox.kernel.patterns import Pattern
from payment_sandbox.projects.http_clients import REPEATED_METHODS, find_resent
from payment_sandbox.projects.journal import (
    ERROR_STATUS_MIN,
    JOURNAL_BODY_BYTES,
    MASKING_MARGIN,
    PATH_LENGTH_MAX,
    TEST,
    LoggedRequest,
    ReceivedRequest,
    truncate_masked,
    without_secret_headers,
)
from payment_sandbox.projects.project import Project
from payment_sandbox.projects.slots import Slot
from payment_sandbox.web.answers.responses import refuse_changed_order
from payment_sandbox.web.auth import find_project, refuse_foreign_host, require_project
from payment_sandbox.web.bodies import BODY_BYTES_MAX, body_length, sent_body
from payment_sandbox.web.call import EMPTY_SEGMENTS, Call
from payment_sandbox.web.error_answers import answer_for, report_refused
from payment_sandbox.web.error_bodies import MERCHANT_API, RequestRefused
from payment_sandbox.web.idempotency import claim_key
from payment_sandbox.web.merchant.explanation import explain
from payment_sandbox.web.merchant.fault_effects import begin_fault, end_fault
from payment_sandbox.web.merchant.reading import add_note_headers, note_unknown_query, warn
from payment_sandbox.web.releasing import release_webhooks

BODY_ERRORS: Final = (400, 401, 413, 415)
CHANGE_ERRORS: Final = (400, 401, 404, 409, 412, 413, 415)
NOTED: Final[Slot[set[str]]] = Slot(set)
"""The notes that the journal of an epoch has once."""
EMPTY_SEGMENT_WARNING: Final = (
    "the path began with an empty segment: write the base address without its final slash"
)
PATH_STORED_MAX: Final = PATH_LENGTH_MAX + MASKING_MARGIN
BODY_STORED_BYTES: Final = JOURNAL_BODY_BYTES + MASKING_MARGIN
EMPTY_ID: Final = Pattern(r"\A/v1/orders/(?:/|[^/]+/(transaction)s//)")


merchant = Blueprint("merchant", __name__, url_prefix=MERCHANT_API)


@merchant.before_request
def admit_call() -> Response | None:
    """Find the project, run its due events, and draw the id of the call's journal entry.

    The entry is the cause of all changes made by the call, whose webhooks are held until its response. A
    configured fault may answer instead of the view.

    Raises:
        RequestRefused: 403, 401.
        NotFound: the path has an empty id.
        AlreadyAnswered, KeyReused, KeyInUse: see ``claim_key``.
        Invalid: the project's settings refuse unknown query parameters.
        OrderChanged: the call's If-Match is out of date.
    """
    call: Call = g.call
    refuse_foreign_host(call)
    require_project(call)
    if "//" in call.request.path:
        refuse_empty_id(call)
    call.catch_up()
    project, environ = call.project, call.request.environ
    call.real_at, call.first_epoch = project.services.real.wall_now(), project.epoch
    call.cause = project.epoch.journal.next_id("request")
    if EMPTY_SEGMENTS in environ and not call.is_from_test:
        warn_of_empty_segment(call)
    if call.request.method != "GET":
        call.hold_webhooks()
    if "HTTP_IDEMPOTENCY_KEY" in environ:
        claim_key(call)
    if environ.get("QUERY_STRING"):
        note_unknown_query(call)
    early = begin_fault(call) if call.may_wait and not call.is_from_test else None
    call.is_fault_begun = early is None
    if early is None and "HTTP_IF_MATCH" in environ:
        refuse_changed_order(call)
    return early


@merchant.after_request
def finish_call(response: Response) -> Response:
    """End the fault, explain, journal, and release the webhooks; errors become answers, too."""
    call: Call = g.call
    try:
        if call.is_fault_begun and call.notes.fault is not None:
            response = end_fault(call, call.notes.fault, response)
    except Exception as error:
        response = answer_for(call, error)
    try:
        add_note_headers(call, response)
        if response.status_code >= ERROR_STATUS_MIN:
            explain(call, response, call.owner)
        journal_call(call, response)
    except Exception as error:
        response = answer_for(call, error)
    return release_webhooks(call, response) if call.held is not None else response


@merchant.errorhandler(Exception)
def answer_error(error: Exception) -> Response:
    """Answer a refused or failed call."""
    return answer_for(g.call, error)


def warn_of_empty_segment(call: Call) -> None:
    """Warn once of a path that begins with an empty segment."""
    noted = call.first_epoch.slots.of(NOTED)
    if EMPTY_SEGMENT_WARNING not in noted:
        noted.add(EMPTY_SEGMENT_WARNING)
        warn(call, EMPTY_SEGMENT_WARNING)


def refuse_empty_id(call: Call) -> None:
    """Refuse a path with an empty id, which would match the path of a list.

    Raises:
        NotFound: says which id is empty.
    """
    empty = EMPTY_ID.search(call.request.path)
    if empty is not None:
        raise NotFound(f"the {empty[1] or 'order'} id is empty")


def journal_call(call: Call, response: Response) -> None:
    """Add the call to the journal of its project, if that is known; of a test's calls only a refused one."""
    project = call.owner
    if project is not None and not (call.cause is not None and call.is_from_test):
        is_reset = call.cause is not None and project.epoch is not call.first_epoch  # its id may be another's
        add_entry(call, project, response, None if is_reset else call.cause)


def add_entry(call: Call, project: Project, response: Response, entry_id: str | None = None) -> None:
    """Add a call and its response to the journal, by default under the next id.

    They are kept as they are, and masked when somebody looks at them.
    """
    request, notes, journal = call.request, call.notes, project.epoch.journal
    answered_at = project.services.real.wall_now()
    request_id = entry_id or journal.next_id("request")
    order_id = notes.order_id or _sent_order_id(call, project.masking)
    make_entry = partial(
        _make_entry,
        project.masking,
        _headers(call),
        id=request_id,
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
        response_headers=tuple(response.headers),
        transaction_id=notes.transaction_id,
        order_id=order_id,
        unknown=notes.unknown,
        warnings=notes.warnings,
        caller=TEST if request.environ.get("HTTP_SANDBOX_CALLER") == "trigger" else call.connection.caller,
    )
    state, may_be_resent = project.epoch.state, request.method in REPEATED_METHODS
    if may_be_resent and call.connection.headers and (state.faults.faults or state.scenario_faults.faults):
        entry = make_entry()
        make_entry = partial(entry._replace, resent_of=find_resent(journal, entry))
    journal.add([ReceivedRequest(request_id, order_id, make_entry)])


def _sent_order_id(call: Call, masking: Masking) -> str | None:
    """Return the id of an unknown order in the path, masked, because it may be any text."""
    sent = call.values.get("order_id", "")[:PATH_STORED_MAX]
    return truncate_masked(masking.mask_text(sent), sent, PATH_LENGTH_MAX) or None


def _make_entry(masking: Masking, headers: Iterable[tuple[bytes, bytes]], **parts: Any) -> LoggedRequest:
    return LoggedRequest(request_headers=without_secret_headers(headers), **parts).mask(masking)


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
    if request.method == "GET" or not 0 < body_length(request) <= BODY_BYTES_MAX:
        return b""
    if "HTTP_CONTENT_ENCODING" in request.environ:  # such a request is refused, and its body cannot be read
        return b""
    return sent_body(request)[:BODY_STORED_BYTES]


def answer_unrouted(call: Call, error: HTTPException) -> Response:
    """Explain a call that matches no route; journal it if the API key is known."""
    refused: Exception = error
    try:
        refuse_foreign_host(call)
        refuse_empty_id(call)
    except (RequestRefused, NotFound) as other:
        refused = other
    project = None if isinstance(refused, RequestRefused) else find_project(call)
    response = answer_for(call, refused)
    if project is None and not isinstance(refused, RequestRefused):
        report_refused(call, response.status_code, response.get_json()["error"]["value"])
    explain(call, response, project)
    if project is not None:
        add_entry(call, project, response)
    return response
