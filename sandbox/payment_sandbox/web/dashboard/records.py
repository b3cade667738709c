"""The pages of webhooks, requests, the journal, the review, coverage, stored cards and QR codes."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Final, NamedTuple

from flask import Response
from marshmallow import validate

from payment_sandbox.fidelity.ledger import rule_texts
from payment_sandbox.forms import Choice, Form, Text, WebUrl, read
from payment_sandbox.kernel.times import Period, timestamp
from payment_sandbox.operations.act import act
from payment_sandbox.operations.agenda import applies
from payment_sandbox.operations.bank_qr import create_qr_request
from payment_sandbox.operations.coverage import coverage
from payment_sandbox.operations.deliver_webhook import (
    find_delivery,
    redeliver,
    resend_later,
    standard_body,
    standard_url,
)
from payment_sandbox.operations.in_words import describe_call, refusal_message, short_reason, status_in
from payment_sandbox.operations.outcomes import play_outcome, playable_outcomes
from payment_sandbox.orders.actions import CUSTOMER, Action
from payment_sandbox.orders.amounts import CURRENCY, Cents
from payment_sandbox.orders.cards import CARDS, ONE_CLICK, RECURRING, Credential
from payment_sandbox.orders.commands import AttemptDelivery
from payment_sandbox.orders.qr import QrRequest
from payment_sandbox.orders.refusals import Invalid, Unknown, Violation
from payment_sandbox.orders.webhooks import (
    ATTEMPTS_MAX,
    LOST,
    Delivery,
    DeliveryState,
    Reply,
)
from payment_sandbox.projects.epoch import Epoch
from payment_sandbox.projects.journal import JournalEntry
from payment_sandbox.projects.outbox import ResendChanges
from payment_sandbox.projects.project import Project
from payment_sandbox.web.addresses import qr_page_path
from payment_sandbox.web.answers.control import delivery_record, journal_summary
from payment_sandbox.web.answers.history import newest_page, request_record
from payment_sandbox.web.answers.qr import QrForm
from payment_sandbox.web.browsers import redirect
from payment_sandbox.web.call import Call
from payment_sandbox.web.dashboard.frame import (
    FORM_FACTS,
    LIVE_HEADER,
    VIEW_FACTS,
    dashboard,
    enter,
    form_page,
    show,
    url,
    valid_query,
)
from payment_sandbox.web.dashboard.notices import Notice, with_notice
from payment_sandbox.web.dashboard.orders import parse_cents
from payment_sandbox.web.dashboard.snippets import command, curl, format_body
from payment_sandbox.web.dashboard.verdict import available_review, format_moment_of_day, group_findings
from payment_sandbox.web.dashboard.what_if import create_manual_order
from payment_sandbox.web.routes import route

ROWS_SHOWN: Final = 50
BODY_LENGTH_MAX: Final = 16_384
OUTCOME_LABELS: Final = {
    DeliveryState.PENDING.value: "pending (will retry)",
    DeliveryState.DELIVERED.value: "delivered",
    DeliveryState.FAILED.value: "gave up",
    LOST: "lost (fault)",
}
DELAY_LABELS: Final = {"PT1M": "a minute", "PT10M": "ten minutes", "PT1H": "an hour", "P1D": "a day"}
CALL_KIND_LABELS: Final = {
    "2xx": "done",
    "3xx": "not changed",
    "4xx": "refused",
    "5xx": "failed",
    "cut": "cut",
}
PROJECT_PATH: Final = "/dashboard/<project_id>"
STORABLE_CARDS: Final = {name: card for name, card in CARDS.items() if card.refusal is None}
CARD_USE_LABELS: Final = {ONE_CLICK: "one click", RECURRING: "recurring payments"}
SAMPLE_CENTS: Final = 1295
QR_FORM: Final = QrForm()


class WebhookFilter(NamedTuple):
    """A filter of webhooks; an empty field matches every value."""

    state: str  # one of OUTCOME_LABELS
    text: str  # a part of the order's number or id, or of the status

    def matches(self, project: Project, delivery: Delivery) -> bool:
        """Whether the filter matches a webhook."""
        if self.state not in ("", delivery.outcome):
            return False
        order = project.epoch.store.order(delivery.order_id) if self.text else None
        texts = (delivery.order_id, delivery.status, order.merchant_order_id if order is not None else None)
        return any(self.text.casefold() in (text or "").casefold() for text in texts)


def describe_delivery(delivery: Delivery, next_at: datetime | None, now: datetime) -> str:
    """Describe the progress of a webhook in a sentence."""
    outcome, tries = delivery.outcome, delivery.delivery_attempts
    failed = sum(not attempt.reply.is_delivered for attempt in tries)
    if outcome == DeliveryState.PENDING:
        upcoming = (
            f"next at {format_moment_of_day(next_at, now)}"
            if next_at is not None
            else "the next attempt is in flight"
        )
        return f"Pending: {failed} of {ATTEMPTS_MAX} attempts failed, {upcoming}."
    if outcome == LOST:
        return "Lost by a fault: your shop never received it, but the service considers it delivered."
    answer = _describe_reply(tries[-1].reply) if tries else "sent manually"
    if outcome == DeliveryState.FAILED:
        return f"Failed after {failed} attempts: {answer}."
    return f"Delivered{f' on attempt {tries[-1].number}' if failed else ''}: {answer}."


def _describe_reply(reply: Reply) -> str:
    if reply.status is None:
        return reply.error or reply.warning or "no answer"
    return f"your shop answered {reply.status} in {reply.duration_ms:.0f} ms"


def _next_attempts(epoch: Epoch) -> dict[str, datetime]:
    """Return the times of the next attempts of pending webhooks, by webhook id."""
    next_at: dict[str, datetime] = {}
    for due in epoch.timeline:
        if type(due.item) is AttemptDelivery and applies(epoch, due):
            next_at.setdefault(due.item.delivery_id, due.at)
    return next_at


def _webhook_rows(project: Project, deliveries: Sequence[Delivery]) -> list[dict[str, object]]:
    epoch = project.epoch
    has_pending = any(delivery.state is DeliveryState.PENDING for delivery in deliveries)
    next_at = _next_attempts(epoch) if has_pending else {}
    return [
        {
            **delivery_record(delivery, project.masking),
            "created": timestamp(delivery.created),
            "outcome": delivery.outcome,
            "attempt_count": len(delivery.delivery_attempts),
            "next_at": next_at[delivery.id].isoformat() if delivery.id in next_at else None,
            "summary": describe_delivery(delivery, next_at.get(delivery.id), epoch.now()),
        }
        for delivery in deliveries
    ]


@route(dashboard, "GET", f"{PROJECT_PATH}/webhooks/", **VIEW_FACTS)
def get_webhooks_view(call: Call, project_id: str) -> Response:
    """Show the webhooks, newest first."""
    project = enter(call, project_id)
    store = project.epoch.store
    criteria = WebhookFilter(*(call.request.args.get(name, "").strip() for name in WebhookFilter._fields))
    deliveries = store.deliveries()
    newest = (delivery for delivery in reversed(deliveries) if criteria.matches(project, delivery))
    args, remark = valid_query(call.request.args, before=store.delivery)
    query = {"limit": str(ROWS_SHOWN + 1), **_before_query(args)}
    page = newest_page(newest, query, lambda known: store.delivery(known) is not None)[::-1]
    return show(
        call,
        "webhooks",
        project,
        "webhooks",
        rows=_webhook_rows(project, page[:ROWS_SHOWN]),
        has_more=len(page) > ROWS_SHOWN,
        outcomes=OUTCOME_LABELS,
        criteria=criteria,
        remark=remark,
        unreported=len(project.epoch.journal.statuses) if not deliveries else 0,
    )


@route(dashboard, "GET", f"{PROJECT_PATH}/webhooks/<delivery_id>/", **VIEW_FACTS)
def get_webhook_view(call: Call, project_id: str, delivery_id: str) -> Response:
    """Show a webhook with the headers and bodies of its attempts, newest first."""
    project = enter(call, project_id)
    delivery = find_delivery(project, delivery_id)
    beside = call.request.args.get("beside")
    shown = [delivery, *([find_delivery(project, beside)] if beside else [])]
    return show(
        call,
        "webhook",
        project,
        "webhooks",
        webhooks=_webhook_rows(project, shown),
        others=[each for each in project.epoch.store.deliveries_of(delivery.order_id) if each not in shown],
        outcomes=OUTCOME_LABELS,
        default_request=_default_request(project, delivery),
        periods=DELAY_LABELS,
        format_body=format_body,
    )


@route(dashboard, "POST", f"{PROJECT_PATH}/webhooks/<delivery_id>/redeliver/", **FORM_FACTS)
def post_redelivery_view(call: Call, project_id: str, delivery_id: str) -> Response:
    """Redeliver a webhook now or later, optionally with another URL or body."""
    project = enter(call, project_id)
    delivery = find_delivery(project, delivery_id)
    back = form_page(call) or url(project, f"webhooks/{delivery_id}/")
    given = read(
        RESEND_FORM, {name: value for name in RESEND_FORM.fields if (value := call.request.form.get(name))}
    )
    default_url, body = _default_request(project, delivery)
    changed = ResendChanges(_override(given.get("url"), default_url), _override(given.get("body"), body))
    if "after" not in given:
        redeliver(project, delivery_id, changed)
        return redirect(back)
    resend_later(project, delivery_id, changed, Period.parse(given["after"]))
    text = f"The webhook will be resent in {DELAY_LABELS[given['after']]} of sandbox time."
    return redirect(with_notice(project, back, Notice(text, (delivery.order_id,))))


def _default_request(project: Project, delivery: Delivery) -> tuple[str, str]:
    """Return the masked URL and the body of a webhook, for the resend form."""
    return project.masking.mask_text(standard_url(project.settings, delivery)), standard_body(
        project, delivery
    )


def _override(value: str | None, default: str) -> str | None:
    return value if value is not None and value.strip() != default else None


class ResendForm(Form):
    """Overrides for a manual resend, and its delay."""

    url = WebUrl()
    body = Text(validate=validate.Length(max=BODY_LENGTH_MAX, error="must have at most {max} characters"))
    after = Choice(tuple(DELAY_LABELS))


RESEND_FORM: Final = ResendForm()


class JournalFilter(NamedTuple):
    """A filter of requests; an empty field matches every value."""

    method: str
    status: str  # for example 409 or 4xx
    text: str  # a part of the path, the order's id or the rule

    def matches(self, entry: JournalEntry) -> bool:
        """Whether the filter matches a request."""
        status = self.status.removesuffix("xx")
        return (
            self.method.upper() in ("", entry.method)
            and str(entry.status or "cut").startswith(status)
            and any(self.text.casefold() in (text or "").casefold() for text in self._texts(entry))
        )

    @staticmethod
    def _texts(entry: JournalEntry) -> tuple[str | None, ...]:
        return f"{entry.path}?{entry.query}", entry.order_id, entry.rule


@route(dashboard, "GET", f"{PROJECT_PATH}/journal/", **VIEW_FACTS)
def get_journal_view(call: Call, project_id: str) -> Response:
    """Show the requests to the merchant API, newest first."""
    project = enter(call, project_id)
    journal = project.epoch.journal
    args, remark = valid_query(call.request.args, before=journal.find)
    query = {"limit": str(ROWS_SHOWN + 1), **_before_query(args)}
    criteria = JournalFilter(*(call.request.args.get(name, "").strip() for name in JournalFilter._fields))
    newest = journal.entries(criteria.matches, newest_first=True, with_bodies=False)
    page = newest_page(newest, query, lambda known: journal.find(known) is not None)[::-1]
    return show(
        call,
        "journal",
        project,
        "journal",
        rows=list(_call_rows(project, page[:ROWS_SHOWN])),
        has_more=len(page) > ROWS_SHOWN,
        dropped=journal.dropped_count,
        criteria=criteria,
        remark=remark,
        kinds=CALL_KIND_LABELS,
    )


def _call_rows(project: Project, page: Sequence[JournalEntry]) -> Iterator[dict[str, object]]:
    """Yield descriptions of requests, with their durations and the reasons for refusals."""
    epoch, ids = project.epoch, {entry.id for entry in page}
    complete = {entry.id: entry for entry in epoch.journal.unmasked_entries() if entry.id in ids}
    for entry in page:
        known = complete.get(entry.id, entry)
        words, status = describe_call(known), status_in(known)
        words = f"{words} → {status}" if words and status else words
        yield {
            **journal_summary(entry),
            "order_id": entry.order_id if epoch.store.order(entry.order_id or "") is not None else None,
            "words": epoch.journal.mask_text(short_reason(known) if entry.rule is not None else words),
            "took_ms": _duration_ms(entry),
        }


def _duration_ms(entry: JournalEntry) -> float | None:
    if entry.real_at is None or entry.answered_at is None:
        return None
    return (entry.answered_at - entry.real_at) / timedelta(milliseconds=1)


@route(dashboard, "GET", f"{PROJECT_PATH}/requests/<entry_id>/", **VIEW_FACTS)
def get_request_view(call: Call, project_id: str, entry_id: str) -> Response:
    """Show a request and its response with headers and bodies, and links to the adjacent requests."""
    project = enter(call, project_id)
    entry = project.epoch.journal.find(entry_id)
    if entry is None:
        raise Unknown(f"the journal has no request {entry_id!r}; it may have been dropped")
    ids = [known.id for known in project.epoch.journal.unmasked_entries()]
    at = ids.index(entry_id)
    return show(
        call,
        "request",
        project,
        "journal",
        entry=request_record(project, entry),
        reason=project.epoch.journal.mask_text(refusal_message(entry)) or short_reason(entry),
        took_ms=_duration_ms(entry),
        curl=curl(project, entry),
        older=ids[at - 1] if at else None,
        newer=next(iter(ids[at + 1 : at + 2]), None),
        format_body=format_body,
    )


@route(dashboard, "GET", f"{PROJECT_PATH}/review/", **VIEW_FACTS)
def get_review_view(call: Call, project_id: str) -> Response:
    """Show the mistakes of the integration."""
    project = enter(call, project_id)
    known = available_review(
        project, may_wait=LIVE_HEADER in call.request.headers or "now" in call.request.args
    )
    groups = group_findings(known.findings) if known is not None else None
    return show(call, "review", project, "review", groups=groups)


@route(dashboard, "GET", f"{PROJECT_PATH}/coverage/", **VIEW_FACTS)
def get_coverage_view(call: Call, project_id: str) -> Response:
    """Show the cases covered by the shop, out of all possible cases."""
    project = enter(call, project_id)
    known = available_review(project, may_wait=LIVE_HEADER in call.request.headers)
    return show(
        call,
        "coverage",
        project,
        "coverage",
        covered=coverage(project, known.findings if known is not None else ()),
        is_judged=known is not None,
        playable=lambda method: playable_outcomes(project, method),
        rule_texts=rule_texts(),
        played_at=lambda order_id: format_moment_of_day(project.find_order(order_id).created, project.now()),
    )


@route(dashboard, "POST", f"{PROJECT_PATH}/coverage/", **FORM_FACTS)
def post_coverage(call: Call, project_id: str) -> Response:
    """Play an uncovered case."""
    project = enter(call, project_id)
    method, _, end = call.request.form.get("case", "").partition(" ")
    order = play_outcome(project, method, end, lambda body: create_manual_order(project, body, {}))
    notice = Notice(f"Played: {method}, {end}.")
    return redirect(with_notice(project, url(project, f"orders/{order.id}/"), notice))


@route(dashboard, "GET", f"{PROJECT_PATH}/vault/", **VIEW_FACTS)
def get_vault_view(call: Call, project_id: str) -> Response:
    """Show the stored cards and the QR codes, with forms to create more."""
    project = enter(call, project_id)
    store, first = project.epoch.store, next(iter(STORABLE_CARDS))
    cards, codes = store.credentials()[::-1], store.qr_requests()[::-1]
    pay = {"actor": "customer", "action": "pay", "card": first}
    return show(
        call,
        "vault",
        project,
        "vault",
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
        store_curl=command(project, "/v1/orders/", _first_payment(ONE_CLICK, SAMPLE_CENTS)),
        pay_curl=command(project, "/control/orders/<order_id>/act/", pay),
        code_curl=command(project, "/v1/bankqr/", _qr_body("Table 4", SAMPLE_CENTS, False, False)),
    )


@route(dashboard, "POST", f"{PROJECT_PATH}/vault/cards/", **FORM_FACTS)
def post_card(call: Call, project_id: str) -> Response:
    """Store a test card with a first payment."""
    project = enter(call, project_id)
    name, use = (call.request.form.get(field, "") for field in ("card", "use"))
    if name not in STORABLE_CARDS or use not in CARD_USE_LABELS:
        raise Invalid([Violation("card", f"choose one of: {', '.join(STORABLE_CARDS)}")])
    cents = parse_cents(call, "amount") or SAMPLE_CENTS
    call.hold_webhooks()
    order = create_manual_order(project, _first_payment(use, cents), {})
    act(project, order.id, Action(CUSTOMER, "pay", card=name))
    notice = Notice(f"Stored {STORABLE_CARDS[name].truncated_pan} with the payment of", (order.id,))
    return redirect(with_notice(project, url(project, "vault/"), notice))


@route(dashboard, "POST", f"{PROJECT_PATH}/vault/codes/", **FORM_FACTS)
def post_qr_request(call: Call, project_id: str) -> Response:
    """Create a bank QR request."""
    project = enter(call, project_id)
    form, cents = call.request.form, parse_cents(call, "amount")
    is_changeable = "changeable" in form
    if cents is None and not is_changeable:
        raise Invalid([Violation("amount", "enter an amount, or let the payer change it")])
    text = project.masking.mask_text(form.get("description", "").strip())
    body = _qr_body(text, cents, is_changeable, "reusable" in form)
    create_qr_request(project, read(QR_FORM, body))
    return redirect(with_notice(project, url(project, "vault/"), Notice("The QR code can be scanned now.")))


def _first_payment(use: str, cents: Cents) -> dict[str, object]:
    details = {"one_click_type" if use == ONE_CLICK else "recurring_type": "first"}
    attempt = {"payment_method": "credit-card", "payment_method_details": details}
    return {"currency": CURRENCY, "amount": cents, "transactions": [attempt]}


def _charge_command(project: Project, card: Credential) -> str:
    kind, more = ("one_click_type", {"cvc": "123"}) if card.use == ONE_CLICK else ("recurring_type", {})
    details = {kind: card.use, "vault_token": card.vault_token, **more}
    attempt = {"payment_method": "credit-card", "payment_method_details": details}
    body = {"currency": CURRENCY, "amount": card.amount_cents, "transactions": [attempt]}
    return command(project, "/v1/orders/", body)


def _qr_body(text: str, cents: Cents | None, is_changeable: bool, is_reusable: bool) -> dict[str, object]:
    given = {"amount": cents, "description": text or None}
    return {
        **{name: value for name, value in given.items() if value is not None},
        "amount_changeable": is_changeable,
        "one_off": not is_reusable,
    }


def _code_state(code: QrRequest, now: datetime) -> str:
    if now >= code.expires_at:
        return "expired"
    return "used" if code.one_off and code.scans else "open"


def _before_query(args: Mapping[str, str]) -> dict[str, str]:
    return {"before": args["before"]} if "before" in args else {}
