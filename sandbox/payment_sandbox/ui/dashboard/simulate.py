"""The simulated world: the scenario, common faults, test cards and QR codes."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any, Final, NamedTuple

from flask import Response

from payment_sandbox.forms import read
from payment_sandbox.methods import ALL_METHODS
from payment_sandbox.methods.common import PAGE_KEYS
from payment_sandbox.operations.act import act
from payment_sandbox.operations.bank_qr import create_qr_request
from payment_sandbox.operations.choose_scenario import choose_scenario
from payment_sandbox.orders.actions import CUSTOMER, Action
from payment_sandbox.orders.amounts import CURRENCY
from payment_sandbox.orders.cards import CARDS, ONE_CLICK, RECURRING, Credential
from payment_sandbox.orders.qr import QrRequest
from payment_sandbox.orders.refusals import Invalid, Unknown, Violation
from payment_sandbox.projects.default_scenario import default_scenario
from payment_sandbox.projects.faults import ProjectFaults
from payment_sandbox.projects.project import Project
from payment_sandbox.scenarios.documents import Document, parse_yaml
from payment_sandbox.scenarios.risks import BLOCKED_SHOP, DOUBLE_PAYMENT, DUPLICATION, UNSHIPPED
from payment_sandbox.scenarios.sentences import rule_in_words
from payment_sandbox.ui.dashboard.frame import (
    FORM_FACTS,
    VIEW_FACTS,
    enter,
    form_page,
    show,
    url,
)
from payment_sandbox.ui.dashboard.front_page import create_manual_order
from payment_sandbox.ui.dashboard.notices import Notice, with_notice
from payment_sandbox.ui.dashboard.order_page import parse_cents
from payment_sandbox.ui.dashboard.snippets import command
from payment_sandbox.web.answers.overview import scenario_record
from payment_sandbox.web.answers.page_urls import qr_page_path
from payment_sandbox.web.answers.qr_tables import QrForm
from payment_sandbox.web.browsers import redirect
from payment_sandbox.web.call import Call
from payment_sandbox.web.routes import stated

BAD_REQUEST: Final = 400
ROWS_SHOWN: Final = 50
STORABLE_CARDS: Final = {name: card for name, card in CARDS.items() if card.refusal is None}
CARD_USE_LABELS: Final = {ONE_CLICK: "one click", RECURRING: "recurring payments"}
SAMPLE_CENTS: Final = 1295
QR_FORM: Final = QrForm()
METHODS_WITH_PAGE: Final = frozenset(
    method.name for method in ALL_METHODS if any(keys >= PAGE_KEYS for keys in method.capabilities.outcomes)
)
"""The payment methods with a customer page."""


class Switch(NamedTuple):
    """A switch: its name and title, the risk for a shop, and its rule for webhooks or faults."""

    name: str
    title: str
    risk: str
    kind: str
    rule: Mapping[str, Any]


NEXT_ORDER: Final = {"method": "POST", "path": "/v1/orders/", "nth": 1}
LOST_ANSWER: Final = {"status": 503, "phase": "after"}
SWITCHES: Final = (
    Switch(
        "webhook-twice", "Every webhook arrives twice", DUPLICATION, "webhooks", {"then": {"duplicate": 2}}
    ),
    Switch(
        "webhook-late",
        "Every webhook arrives 10 minutes late",
        UNSHIPPED,
        "webhooks",
        {"then": {"delay": "PT10M"}},
    ),
    Switch("unreachable", "Your shop is unreachable", UNSHIPPED, "webhooks", {"then": {"timeout": True}}),
    Switch(
        "unavailable",
        "The next call gets a 503",
        UNSHIPPED,
        "faults",
        {"when": {"nth": 1}, "then": {"status": 503}},
    ),
    Switch(
        "lost-answer",
        "The response to the next new order is lost",
        DOUBLE_PAYMENT,
        "faults",
        {"when": NEXT_ORDER, "then": LOST_ANSWER},
    ),
    Switch("slow", "Every response takes 1.5 s", BLOCKED_SHOP, "faults", {"then": {"latency": 1.5}}),
)


def switches(project: Project) -> list[tuple[Switch, bool]]:
    """Return all switches, and whether they are on."""
    faults = project.epoch.state.faults
    return [(switch, _is_on(switch, faults)) for switch in SWITCHES]


def _is_on(switch: Switch, faults: ProjectFaults) -> bool:
    """Whether the rule of a switch is set and not spent; some rules apply to a single call."""
    known = faults.document.get(switch.kind, [])
    return switch.rule in known and (
        switch.kind == "webhooks" or not faults.is_spent(known.index(switch.rule))
    )


def _toggle(switch: Switch, before: ProjectFaults) -> ProjectFaults:
    rules = [dict(switch.rule)]
    others = [rule for rule in before.document.get(switch.kind, ()) if rule not in rules]
    # the first matching rule applies
    return before.with_rules(switch.kind, others if _is_on(switch, before) else [*rules, *others], rules)


@stated(**FORM_FACTS)
def post_switch(call: Call, project_id: str) -> Response:
    """Switch a common fault on or off, or remove all faults; other rules remain, with their uses."""
    project = enter(call, project_id)
    name = call.request.form.get("switch", "")
    switch = next((each for each in SWITCHES if each.name == name), None)
    if name == "none":
        project.put_faults({})
    elif switch is None:
        raise Unknown(f"there is no switch {name!r}")
    else:
        project.change_faults(partial(_toggle, switch))
    return redirect(form_page(call) or url(project, "simulate/"))


@stated(**VIEW_FACTS)
def get_simulate_view(call: Call, project_id: str) -> Response:
    """Show the scenario, the faults, the stored cards and the QR codes."""
    return _simulate_page(call, enter(call, project_id))


@stated(**FORM_FACTS)
def post_scenario(call: Call, project_id: str) -> Response:
    """Activate a scenario by name or from YAML."""
    project = enter(call, project_id)
    text = call.request.form.get("yaml", "")
    try:
        body = parse_yaml(text) if text.strip() else Document({"name": call.request.form.get("name", "")})
        choose_scenario(project, body, call.site.registry.catalogue)
    except Invalid as invalid:
        return _simulate_page(call, project, text, invalid.violations)
    name = project.epoch.state.scenario.name
    notice = Notice(f"Scenario {name} is in use: new orders follow it, attempts in progress do not.")
    return redirect(with_notice(project, form_page(call) or url(project, "simulate/"), notice))


def _simulate_page(call: Call, project: Project, text: str = "", wrong: Sequence[Violation] = ()) -> Response:
    text, violations = project.masking.mask_text(text), [project.masking.mask_record(each) for each in wrong]
    known = {
        scenario.name: scenario
        for scenario in (default_scenario(), *call.site.registry.catalogue.scenarios.values())
    }
    store = project.epoch.store
    cards, codes = store.credentials()[::-1], store.qr_requests()[::-1]
    return show(
        call,
        "simulate",
        project,
        "simulate",
        BAD_REQUEST if violations else 200,
        active=scenario_record(project, project.epoch.state.scenario),
        scenarios=list(known.values()),
        switches=switches(project),
        text=text,
        in_words=partial(rule_in_words, online=METHODS_WITH_PAGE),
        lines=text.replace("\r\n", "\n").split("\n") if violations else [],
        violations=violations,
        wrong_lines={violation.line for violation in violations if violation.line is not None},
        cards=[(card, _charge_command(project, card)) for card in cards[:ROWS_SHOWN]],
        codes=[
            (project.masking.mask_record(code), _code_state(code, project.now()))
            for code in codes[:ROWS_SHOWN]
        ],
        cards_omitted=max(0, len(cards) - ROWS_SHOWN),
        codes_omitted=max(0, len(codes) - ROWS_SHOWN),
        page_of=partial(qr_page_path, project),
        storable=STORABLE_CARDS,
        uses=CARD_USE_LABELS,
    )


@stated(**FORM_FACTS)
def post_card(call: Call, project_id: str) -> Response:
    """Store a test card with a first payment."""
    project = enter(call, project_id)
    name, use = (call.request.form.get(field, "") for field in ("card", "use"))
    if name not in STORABLE_CARDS or use not in CARD_USE_LABELS:
        raise Invalid([Violation("card", f"choose one of: {', '.join(STORABLE_CARDS)}")])
    cents = parse_cents(call, "amount") or SAMPLE_CENTS
    call.hold_webhooks()
    details = {"one_click_type" if use == ONE_CLICK else "recurring_type": "first"}
    attempt = {"payment_method": "credit-card", "payment_method_details": details}
    order = create_manual_order(project, {"currency": CURRENCY, "amount": cents, "transactions": [attempt]})
    act(project, order.id, Action(CUSTOMER, "pay", card=name))
    notice = Notice(f"Stored {STORABLE_CARDS[name].truncated_pan} with the payment of", (order.id,))
    return redirect(with_notice(project, url(project, "simulate/"), notice))


@stated(**FORM_FACTS)
def post_qr_request(call: Call, project_id: str) -> Response:
    """Create a bank QR request."""
    project = enter(call, project_id)
    form, cents = call.request.form, parse_cents(call, "amount")
    is_changeable = "changeable" in form
    if cents is None and not is_changeable:
        raise Invalid([Violation("amount", "enter an amount, or let the payer change it")])
    text = project.masking.mask_text(form.get("description", "").strip())
    given = {"amount": cents, "description": text or None}
    body = {
        **{name: value for name, value in given.items() if value is not None},
        "amount_changeable": is_changeable,
        "one_off": "reusable" not in form,
    }
    create_qr_request(project, read(QR_FORM, body))
    return redirect(
        with_notice(project, url(project, "simulate/"), Notice("The QR code can be scanned now."))
    )


def _charge_command(project: Project, card: Credential) -> str:
    kind, more = ("one_click_type", {"cvc": "123"}) if card.use == ONE_CLICK else ("recurring_type", {})
    details = {kind: card.use, "vault_token": card.vault_token, **more}
    attempt = {"payment_method": "credit-card", "payment_method_details": details}
    body = {"currency": CURRENCY, "amount": card.amount_cents, "transactions": [attempt]}
    return command(project, "/v1/orders/", body)


def _code_state(code: QrRequest, now: datetime) -> str:
    if now >= code.expires_at:
        return "expired"
    return "used" if code.one_off and code.scans else "open"
