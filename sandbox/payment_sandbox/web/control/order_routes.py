"""Routes for orders, their history and scenarios; the journal does not record reads."""

from itertools import islice
from typing import TYPE_CHECKING, Final

from flask import Response

from payment_sandbox.forms import read
from payment_sandbox.kernel.times import timestamp
from payment_sandbox.loading import lazy
from payment_sandbox.operations.act import act, act_on_attempt
from payment_sandbox.operations.bank_qr import scan
from payment_sandbox.operations.choose_scenario import choose_scenario, file_schema
from payment_sandbox.operations.coverage import coverage
from payment_sandbox.operations.find_orders import OrderFilter, find_orders
from payment_sandbox.operations.history import as_mapping, history
from payment_sandbox.operations.review import (
    describe_mistakes,
    group_findings,
    review,
    start_of,
)
from payment_sandbox.orders.actions import Action
from payment_sandbox.orders.cards import Credential
from payment_sandbox.orders.qr import QrRequest
from payment_sandbox.orders.refusals import Unknown
from payment_sandbox.projects.default_scenario import default_scenario
from payment_sandbox.projects.journal import VIA_CONTROL, JournalEntry, PerformedAction, to_plain_data
from payment_sandbox.projects.project import Project
from payment_sandbox.projects.registry import FIRST_API_KEY
from payment_sandbox.projects.unmatched import unmatched_rules
from payment_sandbox.scenarios.model import Scenario
from payment_sandbox.scenarios.scenario_forms import FaultsForm, ScenarioForm
from payment_sandbox.web.answers import records
from payment_sandbox.web.answers.order_tables import ORDER
from payment_sandbox.web.answers.overview import (
    OrderReview,
    coverage_row,
    group_record,
    order_overview,
    order_rows,
    scenario_record,
    scenario_with_matches,
)
from payment_sandbox.web.answers.page_urls import qr_page_url
from payment_sandbox.web.answers.responses import json_answer, list_answer, order_answer
from payment_sandbox.web.answers.timeline_report import newest_page, report
from payment_sandbox.web.bodies import document_body, json_body
from payment_sandbox.web.call import Call
from payment_sandbox.web.control.control_face import BODY_ERRORS, control
from payment_sandbox.web.control.control_forms import (
    ActionsQuery,
    OrdersQuery,
    ReportQuery,
    ScanForm,
    TimelineQuery,
)
from payment_sandbox.web.idempotency import claim_key
from payment_sandbox.web.routes import declare_list, route
from payment_sandbox.web.shared_forms import ActForm

if TYPE_CHECKING:
    from payment_sandbox.web.answers import verdict
else:
    verdict = lazy("payment_sandbox.web.answers.verdict")


@route(
    control,
    "GET",
    "/orders/",
    answers=declare_list(records.OrderRow, "Orders"),
    query=OrdersQuery,
    errors=(400, 401),
    slow=True,
)
def get_orders(call: Call) -> Response:
    """List orders, newest first."""
    query = call.request.args
    conditions = OrderFilter(query.get("status"), query.get("method"), query.get("text"), query.get("before"))
    limit = query.get("limit")
    orders = islice(find_orders(call.project.epoch, conditions), int(limit) if limit is not None else None)
    owner = call.project
    return list_answer(order_rows(owner, orders))


@route(
    control,
    "GET",
    "/orders/<order_id>/",
    answers=records.OrderOverview,
    errors=(401, 404),
    slow=True,
)
def get_order_overview(call: Call, order_id: str) -> Response:
    """Get one order with its possible actions, scheduled events, webhooks and refunds."""
    return json_answer(order_overview(call.project, call.project.find_order(order_id)))


@route(
    control,
    "GET",
    "/orders/<order_id>/review/",
    answers=OrderReview,
    errors=(401, 404),
    slow=True,
)
def get_order_review(call: Call, order_id: str) -> Response:
    """Review one order, and write a test of it, which fails while the shop makes the order's mistakes."""
    return json_answer(verdict.verdict_record(call.project, call.project.find_order(order_id)))


@route(
    control,
    "GET",
    "/timeline/",
    answers=declare_list(records.TimelineRecord, "Timeline"),
    query=TimelineQuery,
    errors=(400, 401, 404),
    slow=True,
)
def get_timeline(call: Call) -> Response:
    """List the history of the project, causes before effects."""
    timeline_entries = history(call.project.epoch, call.request.args.get("order_id"))
    limit = call.request.args.get("limit")
    shown = timeline_entries[-int(limit) :] if limit is not None else timeline_entries
    return list_answer(map(as_mapping, shown), call.project.epoch.journal.dropped_count)


@route(
    control,
    "GET",
    "/report/",
    answers=records.Report,
    query=ReportQuery,
    errors=(400, 401, 404),
    slow=True,
)
def get_report(call: Call) -> Response:
    """Get the timeline and the review findings as text, for the report of a failed test."""
    is_guarded = call.site.control_token is not None  # teams on one server must not see each other's calls
    other_calls = (
        []
        if is_guarded
        else [*call.site.refused.calls_since(call.project.loaded_at), *_calls_with_first_key(call)]
    )
    return json_answer({"text": report(call.project, call.request.args.get("order_id"), other_calls)})


def _calls_with_first_key(call: Call) -> list[str]:
    """List the calls made with the first project's key, if none was made with this project's key."""
    own, first = call.project, call.site.registry.find(FIRST_API_KEY)
    if first in (None, own) or own.epoch.journal.of(JournalEntry):
        return []
    return [
        f"{entry.method} {entry.path} -> {entry.status}: with {FIRST_API_KEY}, the key of the first project"
        for entry in first.epoch.journal.entries(lambda entry: start_of(entry) >= own.loaded_at)
    ]


@route(
    control,
    "GET",
    "/actions/",
    answers=declare_list(PerformedAction, "PerformedActions"),
    query=ActionsQuery,
    errors=(400, 401),
    slow=True,
)
def get_actions(call: Call) -> Response:
    """List the actions by customers, banks, screenings and processors, newest last."""
    order_id = call.request.args.get("order_id")
    actions = list(
        call.project.epoch.journal.actions(frozenset((order_id,)) if order_id is not None else None)
    )
    return list_answer(map(to_plain_data, newest_page(actions, call.request.args)))


@route(control, "GET", "/review/", answers=records.ReviewResult, slow=True)
def get_review(call: Call) -> Response:
    """List the mistakes in the integration's requests and webhook responses."""
    findings = review(call.project.epoch)
    groups = [group_record(group) for group in group_findings(findings)]
    unmatched = unmatched_rules(call.project.epoch)
    text = "\n".join(filter(None, [describe_mistakes(findings), *unmatched]))
    return list_answer([each._asdict() for each in findings], groups=groups, unmatched=unmatched, text=text)


@route(control, "GET", "/coverage/", answers=records.Coverage, slow=True)
def get_coverage(call: Call) -> Response:
    """Get the coverage: the cases handled by the shop without a mistake, out of all possible cases."""
    covered = coverage(call.project, review(call.project.epoch))
    rows = (coverage_row(row) for row in (*covered.methods, *covered.others))
    return list_answer(rows, percent=round(covered.percent, 1), is_chosen=covered.is_chosen)


@route(control, "GET", "/cards/", answers=declare_list(records.StoredCard, "StoredCards"), slow=True)
def get_cards(call: Call) -> Response:
    """List the stored cards, oldest first."""
    return list_answer(map(_card_record, call.project.epoch.store.credentials()))


@route(control, "GET", "/bankqr/", answers=declare_list(records.QrRow, "QrRequests"), slow=True)
def get_qr_requests(call: Call) -> Response:
    """List the QR requests, oldest first."""
    owner = call.project
    return list_answer(_qr_record(owner, request) for request in owner.epoch.store.qr_requests())


def _card_record(stored: Credential) -> dict[str, object]:
    return {
        "vault_token": stored.vault_token,
        "use": stored.use,
        "first_transaction_id": stored.first_transaction_id,
        "amount": stored.amount_cents,
        "stored_at": timestamp(stored.stored_at),
        "brand": stored.brand,
        "card": stored.card,
    }


def _qr_record(owner: Project, request: QrRequest) -> dict[str, object]:
    return {
        "id": request.id,
        "created": timestamp(request.created),
        "expires_at": timestamp(request.expires_at),
        "amount": request.amount_cents,
        "amount_changeable": request.amount_changeable,
        "one_off": request.one_off,
        "scans": request.scans,
        "description": request.description,
        "merchant_order_id": request.merchant_order_id,
        "page": qr_page_url(owner, request),
    }


ACT_FORM = ActForm()
SCAN_FORM = ScanForm()
SCENARIO_EXAMPLE: Final = {
    "name": "second-try-works",
    "rules": [
        {
            "when": {"payment_method": "credit-card", "attempt": 1},
            "then": {"customer": "fails", "after": "PT20S"},
        },
        {"when": {"payment_method": "credit-card"}, "then": {"customer": "pays", "after": "PT1M"}},
    ],
}
FAULTS_EXAMPLE: Final = {
    "faults": [{"when": {"method": "POST", "path": "/v1/orders/", "nth": 2}, "then": {"status": 503}}],
    "webhooks": [{"when": {"attempt": 1}, "then": {"answer": 503}}],
}


@route(control, "GET", "/scenario/", answers=ScenarioForm)
def get_scenario(call: Call) -> Response:
    """Get the active scenario; each rule says how often it has matched."""
    return json_answer(scenario_with_matches(call.project.epoch.state))


@route(
    control,
    "PUT",
    "/scenario/",
    reads=ScenarioForm,
    answers=ScenarioForm,
    errors=BODY_ERRORS,
    example=SCENARIO_EXAMPLE,
    slow=True,
)
def put_scenario(call: Call) -> Response:
    """Activate a scenario, by name or from the body (CTL-19)."""
    choose_scenario(call.project, document_body(call), call.site.registry.catalogue)
    return json_answer(call.project.epoch.state.scenario.document)


@route(control, "DELETE", "/scenario/", answers=ScenarioForm)
def delete_scenario(call: Call) -> Response:
    """Restore the default scenario."""
    call.project.activate(default_scenario())
    return json_answer(call.project.epoch.state.scenario.document)


@route(control, "GET", "/scenarios/", answers=declare_list(records.ScenarioSummary, "Scenarios"))
def get_scenarios(call: Call) -> Response:
    """List the available scenarios (CTL-18)."""
    known = call.site.registry.catalogue.scenarios.values()
    return list_answer([{"name": scenario.name, "description": scenario.description} for scenario in known])


@route(
    control,
    "GET",
    "/scenarios/<name>/",
    answers=records.ScenarioDetail,
    errors=(401, 404),
)
def get_one_scenario(call: Call, name: str) -> Response:
    """Get a scenario with its rules, and their uses if it is active."""
    return json_answer(scenario_record(call.project, _find_scenario(call, name)))


@route(control, "GET", "/scenarios/schema/", answers=records.JsonSchema, slow=True)
def get_scenario_schema(call: Call) -> Response:
    """Get the JSON Schema of scenario files, for editors."""
    return json_answer(file_schema())


def _find_scenario(call: Call, name: str) -> Scenario:
    active = call.project.epoch.state.scenario
    if name == active.name:
        return active
    if name == default_scenario().name:
        return default_scenario()
    known = call.site.registry.catalogue.scenarios
    if name not in known:
        raise Unknown(f"there is no scenario {name!r}", list(known))
    return known[name]


@route(control, "GET", "/faults/", answers=FaultsForm)
def get_faults(call: Call) -> Response:
    """Get the faults in addition to the scenario's; each says how often it has matched."""
    faults = call.project.epoch.state.faults
    return json_answer(faults.with_matches(faults.document))


@route(
    control,
    "PUT",
    "/faults/",
    reads=FaultsForm,
    answers=FaultsForm,
    errors=BODY_ERRORS,
    example=FAULTS_EXAMPLE,
)
def put_faults(call: Call) -> Response:
    """Set faults for requests and webhooks, in addition to the scenario's (CTL-23, CTL-24)."""
    call.project.put_faults(json_body(call))
    return json_answer(call.project.epoch.state.faults.document)


@route(control, "DELETE", "/faults/", answers=FaultsForm)
def delete_faults(call: Call) -> Response:
    """Remove all faults except the scenario's."""
    call.project.put_faults({})
    return json_answer(call.project.epoch.state.faults.document)


@route(
    control,
    "POST",
    "/orders/<order_id>/act/",
    reads=ActForm,
    answers=ORDER.shape,
    errors=(*BODY_ERRORS, 404, 409),
    example={"actor": "customer", "action": "pay", "card": "frictionless"},
)
def post_act(call: Call, order_id: str) -> Response:
    """Act on an order as the customer, the bank or another actor (CTL-20)."""
    data = read(ACT_FORM, json_body(call))
    call.catch_up()
    claim_key(call)
    call.hold_webhooks()
    reason = call.project.masking.mask_text(data.pop("reason", "")) or None
    transaction_id = data.pop("transaction_id", None)
    action = Action(amount_cents=data.pop("amount", None), reason=reason, **data)
    if transaction_id is None:
        return order_answer(call, act(call.project, order_id, action))
    return order_answer(call, act_on_attempt(call.project, order_id, transaction_id, action, VIA_CONTROL))


@route(
    control,
    "POST",
    "/bankqr/<qr_id>/scan/",
    reads=ScanForm,
    answers=ORDER.shape,
    status=201,
    needs_body=False,
    errors=(*BODY_ERRORS, 404, 409),
    example={"issuer_id": "SBXANL2A"},
)
def post_scan(call: Call, qr_id: str) -> Response:
    """Scan a QR code as a payer."""
    data = read(SCAN_FORM, json_body(call, empty_is={}))
    call.catch_up()
    claim_key(call)
    call.hold_webhooks()
    order = scan(call.project, qr_id, data.get("amount"), data.get("issuer_id"))
    return order_answer(call, order, 201)
