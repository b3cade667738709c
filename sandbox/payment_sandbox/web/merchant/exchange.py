"""What happens around every merchant API request: authentication, webhooks, headers, journal."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from threading import Event
from typing import Any, Final

from flask import Blueprint, Response, json, request

from payment_sandbox.fidelity.ledger import rule_texts
from payment_sandbox.forms.fields import NO_TIME
from payment_sandbox.operations.act import possible_now
from payment_sandbox.orders.refusals import Violation
from payment_sandbox.projects.journal import (
    BODY_KEPT_BYTES,
    MARGIN,
    PATH_KEPT_MAX,
    JournalEntry,
    kept_headers,
    set_cause,
)
from payment_sandbox.projects.project import Project
from payment_sandbox.projects.rehearsal import NO_REHEARSAL
from payment_sandbox.projects.settings import own_error
from payment_sandbox.scenarios.effects import (
    RATE_LIMITED,
    ErrorStatus,
    Fault,
    Hang,
    RateLimit,
    RequestEffect,
    Reset,
    Silence,
    Stale,
    Truncate,
    WebhooksFirst,
)
from payment_sandbox.web.after import hold_webhooks, release_webhooks
from payment_sandbox.web.auth import known_project, refuse_foreign_host, require_project
from payment_sandbox.web.bodies import BODY_BYTES_MAX
from payment_sandbox.web.carried import CUT_OFF, SENT_HEADERS, SILENCE, Exchange, exchange
from payment_sandbox.web.errors import RequestRefused, masking, refused_answer, tell_refused
from payment_sandbox.web.merchant.reading import name_ignored, note_query
from payment_sandbox.web.once import begin_once
from payment_sandbox.web.placing import begin_waiting, catch_up_first, may_wait
from payment_sandbox.web.routes import current_facts

EXPLAIN: Final = "Sandbox-Explain"
LENGTH_MAX: Final = 2000
RULES_SHOWN_MAX: Final = 5
FAULT: Final = "CTL-23"

RULE_OF_STATUS: Final = {401: "AUTH-01", 404: "SET-08", 405: "SET-08", 413: "SET-09", 415: "SET-09"}
MALFORMED: Final = "SET-08"
UNKNOWN_KEY: Final = "SET-13"


def explain(response: Response, project: Project | None) -> list[str]:
    """Add a header that names the rule and what is possible now; return the rules."""
    state = exchange()
    violations = state.violations
    rules = _rules(response.status_code, violations)
    if project is not None and state.rule is None:
        state.rule = rules[0]
    texts = rule_texts()
    shown = "; ".join(f"{rule} {texts.get(rule, '')}" for rule in rules[:RULES_SHOWN_MAX])
    possible = _possible(response, violations, project)
    line = masking().text(f"{shown}; possible now: {possible}")
    plain = "".join(letter if " " <= letter <= "~" else "?" for letter in line)
    response.headers[EXPLAIN] = plain if len(plain) <= LENGTH_MAX else f"{plain[:LENGTH_MAX]}..."
    return rules


def rule_of(rules: Mapping[str, str], violation: Violation) -> str:
    """The rule that a violation breaks: its own, else that of its path or of the nearest parent path."""
    if violation.rule is not None:
        return violation.rule
    if violation.message.startswith("is not a known key"):
        return UNKNOWN_KEY
    if violation.message == NO_TIME:
        return "SET-21"
    path = re.sub(r"\[\d+\]", "", violation.path)
    while path and path not in rules:
        path = path.rpartition(".")[0]
    return rules.get(path, MALFORMED)


def _rules(status: int, violations: Sequence[Violation]) -> list[str]:
    if _is_asked_for(status):
        return [FAULT]
    refused = exchange().rule
    if refused is not None:
        return [refused]
    facts = current_facts()
    rules = facts.rules if facts is not None else {}
    broken = [rule_of(rules, violation) for violation in violations]
    if status == 401 and request.headers.get("Authorization"):
        broken = ["AUTH-02"]
    if status == 404 and not request.path.startswith("/v1/"):
        broken = ["VER-02"]
    return list(dict.fromkeys(broken)) or [RULE_OF_STATUS.get(status, MALFORMED)]


def _is_asked_for(status: int) -> bool:
    """Whether this refusal comes from a configured fault."""
    fault = exchange().fault
    return fault is not None and fault.effect is not None and fault.effect.refusal_status == status


def _possible(response: Response, violations: Sequence[Violation], project: Project | None) -> str:
    if project is None:
        return "any call with the API key of a project as the user name of HTTP Basic"
    if _is_asked_for(response.status_code):
        return "the same request, once the configured fault is over"
    if violations:
        mended = "; ".join(map(_mended, violations))
        return (
            f"{mended}; {_possible_with_order(project)}"
            if "order_id" in (request.view_args or {})
            else mended
        )
    if "Allow" in response.headers:
        return response.headers["Allow"]
    return _possible_with_order(project)


def _mended(violation: Violation) -> str:
    """The allowed values if there is a list of them, else what to fix."""
    where = violation.path or "the request"
    if violation.allowed:
        return f"{where}: one of {', '.join(map(str, violation.allowed))}"
    return f"fix {where}"


def _possible_with_order(project: Project) -> str:
    order_id = (request.view_args or {}).get("order_id")
    if order_id is None:
        return "another request"
    order = project.epoch.store.order(order_id)
    if order is None:
        newest = project.epoch.store.newest_order_id
        return f"read {newest}, the newest order here" if newest is not None else "create an order"
    return f"{', '.join(possible_now(order))}; its ETag is {project.epoch.etag(order)}"


SILENCE_SECONDS: Final = 3.0


def apply_before(project: Project) -> Response | None:
    """Find this request's fault, and apply it if it comes before processing."""
    fault = _matching(project) or exchange().rehearsed
    if fault is None or isinstance(fault.effect, WebhooksFirst):
        return None
    begin_waiting()
    exchange().fault = fault
    if fault.latency is not None:
        _pass_real_time(fault.latency)
    return None if fault.is_after else _applied(fault.effect)


def _matching(project: Project) -> Fault | None:
    """The fault that is configured for this request, which is counted."""
    state = project.epoch.state
    if not may_wait() or (not state.faults.faults and not state.scenario_faults.faults):
        return None
    with project.edit() as edit:
        own, faults = edit.state.faults.match(request.method, request.path, edit.now)
        scenario, scenario_faults = edit.state.scenario_faults.match(request.method, request.path, edit.now)
        edit.state = edit.state._replace(faults=faults, scenario_faults=scenario_faults)
    return own or scenario


def apply_after(response: Response, fault: Fault) -> Response:
    """Apply a fault that comes after processing: the response is lost or cut short."""
    if isinstance(fault.effect, Truncate):
        return _truncated(response)
    if fault.is_after:
        return _applied(fault.effect, response.status_code) or response
    return response


def _applied(effect: RequestEffect | None, status: int | None = None) -> Response | None:
    """The response instead; ``status`` is that of the lost response.

    Raises:
        RequestRefused: over the rate limit.
    """
    match effect:
        case ErrorStatus():
            return refused_answer(RequestRefused(effect.status, "a configured fault"))
        case RateLimit():
            over = f"over the rate limit of {effect.value}"
            raise RequestRefused(RATE_LIMITED, over, {"Retry-After": "1"})
        case Hang():
            _pass_real_time(effect.seconds)
            return _no_response(request.environ[CUT_OFF], status)
        case Reset():
            return _no_response(request.environ[CUT_OFF], status)
        case Silence():
            silence = request.environ.get(SILENCE)
            if silence is None:
                _pass_real_time(SILENCE_SECONDS)
            return _no_response(silence or request.environ[CUT_OFF], status)
        case None | Truncate() | Stale():
            return None
        case _:
            raise TypeError(f"nothing says what {effect!r} does to a request")


def _no_response(cut_off: Callable[[], None], status: int | None) -> Response:
    exchange().is_cut, exchange().cut_status = True, status
    return Response(_cut_off(cut_off))


def _pass_real_time(seconds: float) -> None:
    Event().wait(seconds)  # the only real-time wait; the fault requires it


def _cut_off(cut_off: Callable[[], None]) -> Iterator[bytes]:
    cut_off()
    yield b""


def _truncated(response: Response) -> Response:
    """Announce the full length, but send only half of the body."""
    body = response.get_data()
    cut_off = request.environ[CUT_OFF]

    def half() -> Iterator[bytes]:
        yield body[: len(body) // 2]
        cut_off()

    short = Response(half(), status=response.status_code, headers=response.headers)
    short.headers["Content-Length"] = str(len(body))
    return short


def reword(response: Response, project: Project | None, rules: Sequence[str]) -> None:
    """Replace the status, type and sentence of a refusal by those that are set for its type or its rules."""
    errors = project.settings.errors if project is not None else {}
    if not errors or response.is_streamed:
        return
    body = response.get_json(silent=True)
    if not isinstance(body, dict) or "error" not in body:
        return
    error = body["error"]
    own = own_error(errors, error["type"], rules)
    if not own:
        return
    error.update(own)
    response.status_code = error["status"]
    response.set_data(f"{json.dumps(body)}\n")


REFUSED: Final = 400
PATH_STORED_MAX: Final = PATH_KEPT_MAX + MARGIN
BODY_STORED_BYTES: Final = BODY_KEPT_BYTES + MARGIN


def begin() -> Response | None:
    """Find the project, hold webhooks unless the call only reads, and apply a fault that comes first."""
    refuse_foreign_host()
    state = exchange()
    project = require_project()
    catch_up_first(project)
    state.is_by_test = state.request.environ.get("HTTP_SANDBOX_CALLER") == "test"
    state.real_at = project.services.real.wall_now()
    state.journal = project.epoch.journal
    state.record_id = state.journal.next_id("request")
    set_cause(state.record_id)
    first = begin_once(project, is_journaled=not state.is_by_test)
    if first is not None:
        return first
    if not state.is_by_test and project.epoch.rehearsal is not NO_REHEARSAL and may_wait():
        begin_waiting()  # before the step is counted
        state.rehearsed = project.epoch.rehearsal.call(state.request.method, state.request.path)
    if state.request.method != "GET":
        hold_webhooks()
    note_query(project)
    return None if state.is_by_test else apply_before(project)


def finish(response: Response) -> Response:
    """Add the headers, write the journal entry and release the webhooks."""
    state, lost = exchange(), None
    if state.fault is not None:
        lost, response = response, apply_after(response, state.fault)
    is_seen = lost is None or lost is response
    if is_seen and state.project is not None and state.project.epoch.rehearsal is not NO_REHEARSAL:
        _show_rehearsed(response, state, state.project)
    name_ignored(response, state)
    if response.status_code >= REFUSED:
        reword(response, state.project, explain(response, state.project))
    if state.project is not None and not state.is_by_test:
        _keep(state.project, response, state)
    return release_webhooks(response)


def _show_rehearsed(response: Response, state: Exchange, project: Project) -> None:
    """An order as a rehearsal lets the shop see it."""
    if state.order_id is not None and not state.is_by_test and not response.is_streamed:
        body = response.get_data()
        is_stale = state.fault is not None and isinstance(state.fault.effect, Stale)
        response.set_data(project.epoch.rehearsal.answer(state.order_id, body, is_stale=is_stale))


def keep_unrouted(response: Response) -> Response:
    """Explain a request that matches no route; journal it if the API key is known.

    Returns:
        The response, or the refusal of a foreign host.
    """
    try:
        refuse_foreign_host()
    except RequestRefused as refused:
        response = refused_answer(refused)
        explain(response, None)
        return response
    project = known_project()
    reword(response, project, explain(response, project))
    if project is not None:
        _keep(project, response, exchange())
    else:
        tell_refused(response.status_code, response.get_json()["error"]["value"])
    return response


def _keep(project: Project, response: Response, state: Exchange) -> None:
    request = state.request
    status = state.cut_status if state.is_cut else response.status_code
    answer = b"" if response.is_streamed else response.get_data()
    journal, answered_at = project.epoch.journal, project.services.real.wall_now()
    is_reset = state.journal is not journal  # meanwhile; then the id may be another record's
    entry_id = journal.next_id("request") if state.record_id is None or is_reset else state.record_id
    order_id = state.order_id or (request.view_args or {}).get("order_id", "")[:PATH_STORED_MAX] or None
    entry = JournalEntry(
        id=entry_id,
        at=project.now(),
        method=request.method,
        path=request.path[:PATH_STORED_MAX],
        query=request.query_string[:PATH_STORED_MAX].decode(errors="replace"),
        status=status,
        request=_request_body(state),
        response=answer[:BODY_STORED_BYTES],
        ignored=state.ignored,
        rule=state.rule,
        fault=state.fault,
        real_at=state.real_at or answered_at,
        answered_at=answered_at,
        request_headers=kept_headers(_headers(request.environ)),
        response_headers=response.headers,
        transaction_id=state.transaction_id,
        order_id=order_id,
        unknown=state.unknown,
        warnings=state.warnings,
    )
    journal.add([entry])
    project.events.publish_lazily("request", entry.summary)
    project.storage.flush(project)


def _headers(environ: Mapping[str, Any]) -> Iterable[tuple[bytes, bytes]]:
    """The headers of a request as it was sent; without a connection, as they are in its environment."""
    sent: Iterable[tuple[bytes, bytes]] | None = environ.get(SENT_HEADERS)
    if sent is not None:
        return sent
    return [
        (name.removeprefix("HTTP_").replace("_", "-").encode(), value.encode("latin-1"))
        for name, value in environ.items()
        if name.startswith("HTTP_") or name == "CONTENT_TYPE"
    ]


def _request_body(state: Exchange) -> bytes:
    request = state.request
    if request.method == "GET" or not request.content_length or request.content_length > BODY_BYTES_MAX:
        return b""
    if "HTTP_CONTENT_ENCODING" in request.environ:  # refused, and nobody could see what is in it
        return b""
    return request.get_data()[:BODY_STORED_BYTES]


BODY_ERRORS: Final = (400, 401, 413, 415)
TAKING: Final = (400, 401, 404, 409, 412, 413, 415)

api = Blueprint("api", __name__, url_prefix="/v1")
api.before_request(begin)
api.after_request(finish)
