"""The face of the merchant API: its middlewares in order, and the journal entry of each call."""

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any, Final

from werkzeug.wrappers import Response

from payment_sandbox.kernel.masking import Masking
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
from payment_sandbox.web.call import Call
from payment_sandbox.web.error_answers import answer_for, refusal_answer, report_refused
from payment_sandbox.web.error_bodies import RequestRefused
from payment_sandbox.web.faces import Face, Middleware, release_webhooks
from payment_sandbox.web.idempotency import claim_key
from payment_sandbox.web.merchant.explanation import explain
from payment_sandbox.web.merchant.fault_effects import begin_fault, end_fault
from payment_sandbox.web.merchant.reading import add_note_headers, note_unknown_query, warn
from payment_sandbox.web.routes import RouteGroup

BODY_ERRORS: Final = (400, 401, 413, 415)
CHANGE_ERRORS: Final = (400, 401, 404, 409, 412, 413, 415)
NOTED: Final[Slot[set[str]]] = Slot(set)
"""The notes that the journal of an epoch has once."""
EMPTY_SEGMENTS: Final = "the path began with an empty segment: write the base address without its final slash"
PATH_STORED_MAX: Final = PATH_LENGTH_MAX + MASKING_MARGIN
BODY_STORED_BYTES: Final = JOURNAL_BODY_BYTES + MASKING_MARGIN

api = RouteGroup("api", "/v1")


def admit_call(call: Call) -> Response | None:
    """Find the project, run its due events, and draw the id of the call's journal entry.

    The entry is the cause of all changes made by the call. A refusal is explained here.
    """
    try:
        refuse_foreign_host(call)
        require_project(call)
        call.catch_up()
    except Exception as error:
        return _explain_refusal(call, answer_for(call, error), call.owner)
    project = call.project
    call.real_at, call.first_epoch = project.services.real.wall_now(), project.epoch
    call.cause = call.first_epoch.journal.next_id("request")
    if call.has_empty_segments and not call.is_from_test:
        noted = call.first_epoch.slots.of(NOTED)
        if EMPTY_SEGMENTS not in noted:
            noted.add(EMPTY_SEGMENTS)
            warn(call, EMPTY_SEGMENTS)
    return None


def _explain_refusal(call: Call, response: Response, project: Project | None) -> Response:
    """Explain a refusal, and journal it if the project is known."""
    explain(call, response, project)
    if project is not None:
        add_entry(call, project, response)
    return response


def hold_webhooks(call: Call) -> None:
    """Hold the webhooks of a call that may change state, until its response."""
    if call.request.method != "GET":
        call.hold_webhooks()


def journal_call(call: Call, response: Response) -> Response:
    """Add the call to the journal."""
    if not call.is_from_test:
        is_reset = call.project.epoch is not call.first_epoch  # the drawn id may belong to another record
        add_entry(call, call.project, response, None if is_reset else call.cause)
    return response


def explain_call(call: Call, response: Response) -> Response:
    """Name ignored keys, and explain a refusal."""
    add_note_headers(call, response)
    if response.status_code >= ERROR_STATUS_MIN:
        explain(call, response, call.owner)
    return response


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


MIDDLEWARES: Final = (
    Middleware(before=admit_call),
    Middleware(before=hold_webhooks, after=release_webhooks),
    Middleware(after=journal_call),
    Middleware(after=explain_call),
    Middleware(before=claim_key),
    Middleware(before=note_unknown_query),
    Middleware(before=begin_fault, after=end_fault),
    Middleware(before=refuse_changed_order),
)
FACE: Final = Face(api, MIDDLEWARES, answer_for)


def answer_unrouted(call: Call, response: Response) -> Response:
    """Explain a call that matches no route; journal it if the API key is known.

    Returns:
        The response, or the refusal of a foreign host.
    """
    try:
        refuse_foreign_host(call)
    except RequestRefused as refused:
        return _explain_refusal(call, refusal_answer(call, refused), None)
    project = find_project(call)
    if project is None:
        report_refused(call, response.status_code, response.get_json()["error"]["value"])
    return _explain_refusal(call, response, project)
