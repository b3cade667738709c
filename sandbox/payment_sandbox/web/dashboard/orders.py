"""The list of orders, and the page of an order with its diagram and possible actions."""

from datetime import timedelta
from functools import partial
from itertools import islice
from typing import Any, Final, NamedTuple, cast

from flask import Response

from payment_sandbox.forms import read
from payment_sandbox.methods import METHOD_NAMES
from payment_sandbox.operations.act import act
from payment_sandbox.operations.agenda import entries_of
from payment_sandbox.operations.attempts import offered_methods
from payment_sandbox.operations.by_hand import act_as_merchant
from payment_sandbox.operations.find_orders import SORT_ORDERS, OrderFilter, count_orders, find_orders
from payment_sandbox.operations.folding import fold
from payment_sandbox.operations.history import TimelineEntry
from payment_sandbox.operations.in_words import describe_history
from payment_sandbox.operations.recipes import play, playable_recipes
from payment_sandbox.orders.actions import ACTIONS, Action
from payment_sandbox.orders.amounts import AMOUNT_CENTS_MAX, parse_euros
from payment_sandbox.orders.order import Order
from payment_sandbox.orders.refusals import Invalid, Violation
from payment_sandbox.orders.statuses import OrderStatus
from payment_sandbox.orders.webhooks import DeliveryState
from payment_sandbox.projects.journal import MERCHANT_ACTOR
from payment_sandbox.projects.project import Project
from payment_sandbox.web.addresses import order_page_path
from payment_sandbox.web.answers.control import journal_summary
from payment_sandbox.web.answers.overview import order_overview, order_row
from payment_sandbox.web.browsers import redirect
from payment_sandbox.web.call import Call
from payment_sandbox.web.dashboard import faults
from payment_sandbox.web.dashboard.frame import (
    FORM_FACTS,
    ORDER_PATH,
    ORDERS_PATH,
    VIEW_FACTS,
    dashboard,
    enter,
    form_page,
    show,
    url,
    valid_query,
)
from payment_sandbox.web.dashboard.notices import MOMENT_PARAMETER, answer_notice, with_notice
from payment_sandbox.web.dashboard.reproductions import reproduction
from payment_sandbox.web.dashboard.snippets import creation_of, curl, format_body, test_code
from payment_sandbox.web.dashboard.verdict import OrderVerdict, look_of, order_moment, verdict
from payment_sandbox.web.dashboard.what_if import create_manual_order, what_if_options
from payment_sandbox.web.pictures import LANES, ROWS_MAX, ScheduledEvent, draw_sequence, svg
from payment_sandbox.web.routes import route
from payment_sandbox.web.shared_forms import ActForm

ROWS_SHOWN: Final = 50
ROWS_SHOWN_MAX: Final = 5000  # the limit for a diagram
NUMBER_LENGTH_MAX: Final = 9
ANSWER_SECONDS: Final = 12.0  # the longest possible response times of two webhooks
REQUESTS_SHOWN: Final = 8
CUSTOMER_PAGE_ACTIONS: Final = {"customer visit", "customer pay", "customer choose"}
ACTION_LABELS: Final = {
    "customer pay": "Customer pays",
    "customer cancel": "Customer cancels",
    "customer fail": "Payment fails",
    "bank credit": "Money arrives",
    "screening approve": "Screening passes",
    "screening decline": "Screening declines",
    "screening error": "Screening fails",
    "processor settle": "Processor settles",
    "processor fail": "Processor refuses",
}
ACT_FORM: Final = ActForm()
ACTION_DETAILS: Final = ("card", "payment_method", "issuer_id", "reason")
TEST_ORDER: Final = {
    "currency": "EUR",
    "amount": 2295,
    "description": "Two pairs of wool socks",
    "order_lines": [
        {
            "type": "physical",
            "name": "Wool socks, blue",
            "merchant_order_line_id": "socks",
            "quantity": 2,
            "amount": 995,
            "currency": "EUR",
            "vat_percentage": 2100,
        },
        {
            "type": "shipping_fee",
            "name": "Shipping",
            "merchant_order_line_id": "shipping",
            "quantity": 1,
            "amount": 305,
            "currency": "EUR",
            "vat_percentage": 2100,
        },
    ],
    "customer": {
        "first_name": "Jan",
        "last_name": "de Vries",
        "email_address": "jan@example.com",
        "country": "NL",
        "locale": "en-GB",
    },
}


@route(dashboard, "GET", ORDERS_PATH, **VIEW_FACTS)
def get_orders_view(call: Call, project_id: str) -> Response:
    """Show the orders, newest first."""
    project = enter(call, project_id)
    return _orders_page(call, project, None)


@route(dashboard, "POST", ORDERS_PATH, **FORM_FACTS)
def post_test_order(call: Call, project_id: str) -> Response:
    """Create a test order."""
    project = enter(call, project_id)
    call.hold_webhooks()
    order = create_manual_order(project, TEST_ORDER, {})
    return redirect(url(project, f"orders/{order.id}/"))


@route(dashboard, "POST", f"{ORDERS_PATH}in-a-state/", **FORM_FACTS)
def post_order_in_a_state(call: Call, project_id: str) -> Response:
    """Create a test order in a chosen state."""
    project = enter(call, project_id)
    order = play(
        project, call.request.form.get("recipe", ""), lambda body: create_manual_order(project, body, {})
    )
    return redirect(url(project, f"orders/{order.id}/"))


@route(dashboard, "POST", "/dashboard/<project_id>/webhooks/test/", **FORM_FACTS)
def post_test_webhook(call: Call, project_id: str) -> Response:
    """Pay a test order, and show the shop's answers to its webhooks."""
    project = enter(call, project_id)
    order = play(project, "paid", lambda body: create_manual_order(project, body, {}))
    project.settle(ANSWER_SECONDS, orders=[order.id])
    back = form_page(call) or url(project, "webhooks/")
    return redirect(with_notice(project, back, answer_notice(project, order.id)))


@route(dashboard, "GET", ORDER_PATH, **VIEW_FACTS)
def get_order_view(call: Call, project_id: str, order_id: str) -> Response:
    """Show the page of an order."""
    project = enter(call, project_id)
    order = project.find_order(order_id)
    if order.refund_of_order_id is not None:
        return redirect(url(project, f"orders/{order.refund_of_order_id}/"))
    return _orders_page(call, project, order)


@route(dashboard, "POST", f"{ORDER_PATH}act/", **FORM_FACTS)
def post_order_action(call: Call, project_id: str, order_id: str) -> Response:
    """Act as the customer, the bank, the screening, the processor or the merchant."""
    project = enter(call, project_id)
    actor, _, name = call.request.form.get("action", "").partition(" ")
    amount_cents = parse_cents(call, "amount")
    call.hold_webhooks()
    if actor == MERCHANT_ACTOR:
        act_as_merchant(project, order_id, name, amount_cents)
    else:
        given = {field: call.request.form[field] for field in ACTION_DETAILS if call.request.form.get(field)}
        data = read(ACT_FORM, {"actor": actor, "action": name, **given})
        act(project, order_id, Action(amount_cents=amount_cents, **data))
    order = project.find_order(order_id)
    return redirect(form_page(call) or url(project, f"orders/{order.refund_of_order_id or order.id}/"))


def parse_cents(call: Call, field: str) -> int | None:
    """Parse an amount in euros, such as 12.95; None if the field is empty.

    Raises:
        Invalid: not an amount.
    """
    typed = call.request.form.get(field, "").strip().removeprefix("€")
    if not typed:
        return None
    try:
        cents = parse_euros(typed)
    except ValueError:
        raise Invalid([Violation(field, "must be an amount in euros, such as 12.95")]) from None
    if not 0 < cents <= AMOUNT_CENTS_MAX:
        raise Invalid([Violation(field, "must be an amount in euros, at least 0.01")])
    return cents


def due_events(project: Project, order: Order) -> list[ScheduledEvent]:
    """Return the due events of an order for its diagram."""
    return [
        ScheduledEvent(due.at, due.item.kind.replace("-", " ")) for due in entries_of(project.epoch, order)
    ]


def link_of(project: Project, timeline_entry: TimelineEntry) -> str | None:
    """Return the page URL of a request or webhook; None for other timeline entries."""
    if timeline_entry.kind in ("request", "response"):
        return url(project, f"requests/{timeline_entry.id.partition('/')[0]}/")
    if timeline_entry.kind in ("webhook", "webhook-response"):
        return url(project, f"webhooks/{timeline_entry.id.partition('/')[0]}/")
    return None


def _orders_page(call: Call, project: Project, order: Order | None) -> Response:
    args, remark = valid_query(
        call.request.args, before=project.epoch.store.order, sort=SORT_ORDERS.__contains__
    )
    criteria = OrderFilter(*map(args.get, OrderFilter._fields))
    rows = list(islice(find_orders(project.epoch, criteria), ROWS_SHOWN + 1))
    newest = project.epoch.journal.entries(newest_first=True, with_bodies=False)
    return show(
        call,
        "orders",
        project,
        "orders",
        rows=[
            {**project.masking.mask_record(order_row(project, row)), "look": look_of(row)}
            for row in rows[:ROWS_SHOWN]
        ],
        has_more=len(rows) > ROWS_SHOWN,
        count=count_orders(project.epoch),
        criteria=criteria,
        remark=remark,
        sorts=SORT_ORDERS,
        statuses=[status.value for status in OrderStatus],
        methods=METHOD_NAMES,
        recipes=playable_recipes(project.settings.mode),
        requests=[journal_summary(entry) for entry in islice(newest, REQUESTS_SHOWN)],
        switches=faults.switches(project),
        **(_order_values(call, project, order) if order is not None else _empty_values(call, project)),
    )


def _empty_values(call: Call, project: Project) -> dict[str, Any]:
    return {
        "order": None,
        "steps": first_steps(project),
        "calls": first_calls(call.site.public_url),
    }


def _requested_moment(call: Call, entries_max: int) -> int | None:
    """Return the number of timeline entries up to the requested moment; None for the present."""
    text = call.request.args.get(MOMENT_PARAMETER, "")
    is_number = text.isascii() and text.isdecimal() and len(text) < NUMBER_LENGTH_MAX
    return int(text) if is_number and 0 < int(text) <= entries_max else None


def _order_values(call: Call, project: Project, order: Order) -> dict[str, Any]:
    known, created = verdict(project, order), creation_of(project, order)
    overview, reproduced = order_overview(project, order), reproduction(project, order, known.findings)
    by_actor = cast("dict[str, list[str]]", overview["actions"])
    possible = [f"{actor} {name}" for actor in ACTIONS for name in by_actor[actor]]
    return {
        "order": overview["order"],
        "row": order_row(project, order),
        "verdict": known,
        "overview": overview,
        "possible": possible,
        "simulated_actions": [action for action in possible if action in ACTION_LABELS],
        "look": look_of(order),
        "labels": ACTION_LABELS,
        "offered": offered_methods(project.settings, order),
        "page_path": order_page_path(project, order) if set(possible) & CUSTOMER_PAGE_ACTIONS else None,
        "curl": curl(project, created),
        "test_code": reproduced or test_code(project, order),
        "is_reproduced": reproduced is not None,
        "format_body": format_body,
        **_history_values(call, project, order, known),
        **what_if_options(project, order, created),
    }


def _history_values(call: Call, project: Project, order: Order, known: OrderVerdict) -> dict[str, Any]:
    """Return the history of an order as a diagram and as text, up to now or an earlier moment."""
    timeline_entries = describe_history(project.epoch, order.id, known.findings)
    link = partial(link_of, project)
    is_whole = call.request.args.get("rows") == "all"
    rows_max = ROWS_SHOWN_MAX if is_whole else ROWS_MAX
    full_url = None if is_whole else url(project, f"orders/{order.id}/", rows="all")
    shown = timeline_entries[-rows_max:]
    omitted, number = len(timeline_entries) - len(shown), _requested_moment(call, len(timeline_entries))
    past = frozenset(each.id for each in timeline_entries[:number]) if number else None
    events = due_events(project, order)
    diagram = draw_sequence(
        fold(timeline_entries), events, link, rows_max=rows_max, full_url=full_url, past=past
    )
    return {
        "timeline_entries": shown,
        "omitted": omitted,
        "moments": range(omitted + 1, len(timeline_entries) + 1),
        "moment": order_moment(project, order, timeline_entries, number, known.beliefs)
        if timeline_entries
        else None,
        "full_url": full_url,
        "link": link,
        "diagram": diagram,
        "lanes": LANES,
        "picture": svg(diagram, title=f"Sequence diagram of order {order.id}"),
    }


FIRST_BODY: Final = '{"currency": "EUR", "amount": 1295, "description": "Socks"}'
FIRST_CALLS: Final = {
    "curl": "curl -u \"$SANDBOX_API_KEY:\" {url} -H 'Content-Type: application/json' -d '{body}'",
    "Python": 'requests.post("{url}", auth=(os.environ["SANDBOX_API_KEY"], ""), json={body})',
    "Node": (
        'await fetch("{url}", {{method: "POST", body: JSON.stringify({body}), headers: '
        '{{"Content-Type": "application/json", '
        'Authorization: "Basic " + btoa(process.env.SANDBOX_API_KEY + ":")}}}})'
    ),
    "PHP": (
        "file_get_contents('{url}', false, stream_context_create(['http' => ['method' => 'POST', "
        "'content' => '{body}', 'header' => ['Content-Type: application/json', "
        "'Authorization: Basic ' . base64_encode(getenv('SANDBOX_API_KEY') . ':')]]]));"
    ),
    "Ruby": (
        "Net::HTTP.post(URI('{url}'), '{body}', 'Content-Type' => 'application/json', "
        "'Authorization' => 'Basic ' + [\"#{{ENV['SANDBOX_API_KEY']}}:\"].pack('m0'))"
    ),
}


class FirstStep(NamedTuple):
    """A step of the introduction, and whether it is done."""

    label: str
    is_done: bool


def first_steps(project: Project) -> list[FirstStep]:
    """Return the steps of the introduction; empty if all are done."""
    store = project.epoch.store
    is_answered = any(delivery.outcome == DeliveryState.DELIVERED for delivery in store.deliveries())
    steps = [
        FirstStep("Create your first order", bool(project.epoch.orders_created)),
        FirstStep("Answer its first webhook", is_answered),
        FirstStep("Move the clock", _has_moved(project)),
    ]
    return [] if all(step.is_done for step in steps) else steps


def first_calls(server_url: str) -> dict[str, str]:
    """Return the code to create a first order, by language."""
    return {
        name: call.format(url=f"{server_url}/v1/orders/", body=FIRST_BODY)
        for name, call in FIRST_CALLS.items()
    }


def _has_moved(project: Project) -> bool:
    start = project.identity.start.at
    if start is not None and not project.epoch.state.clock.running:
        return project.now() != start
    return abs(project.now() - project.services.real.wall_now()) > timedelta(minutes=1)
