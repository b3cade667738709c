"""The routes of the payment pages: an order's page, an attempt's page and steps, and the result."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Final, NamedTuple

from flask import Response

from payment_sandbox.methods import METHODS_BY_NAME
from payment_sandbox.methods.messages import translate_reason
from payment_sandbox.operations.act import act as act_on_order
from payment_sandbox.operations.act import detail_violations
from payment_sandbox.operations.advance import change_clock
from payment_sandbox.operations.attempts import offered_methods
from payment_sandbox.operations.by_hand import act_as_merchant
from payment_sandbox.orders.actions import CUSTOMER, Action
from payment_sandbox.orders.refunds import refundable_cents
from payment_sandbox.orders.refusals import ActionNotPossible, Invalid, OrderNotCancellable, Unknown
from payment_sandbox.orders.statuses import OrderStatus
from payment_sandbox.orders.webhooks import DeliveryState
from payment_sandbox.projects.journal import VIA_PAGE
from payment_sandbox.ui.pages import attempt_page
from payment_sandbox.ui.pages.attempt_page import (
    BUTTONS,
    EXPIRE_BUTTON,
    FAILURE_REASONS,
    PAY_BUTTON,
    expiry,
    panel,
    secure_action,
    secure_subject,
)
from payment_sandbox.ui.pages.bank_qr_page import qr_svg
from payment_sandbox.ui.pages.language import require_babel
from payment_sandbox.ui.pages.pages_hooks import FORM_FACTS, PAGE_METADATA
from payment_sandbox.ui.pages.payer_page import (
    INVOICE,
    PayerPage,
    find_page,
    record_visit,
    redirect_to_next,
    return_to_shop,
    show,
)
from payment_sandbox.web.answers.page_urls import scan_url
from payment_sandbox.web.answers.records import StateVersion
from payment_sandbox.web.answers.responses import json_answer
from payment_sandbox.web.browsers import redirect
from payment_sandbox.web.call import Call
from payment_sandbox.web.routes import stated


class MethodChoice(NamedTuple):
    """A payment method: the merchant's name for it, its label, and the hint and the icon in the list."""

    name: str
    label: str
    hint: str
    icon: str


class DetailQuestion(NamedTuple):
    """A detail that a method needs from the customer: its label, its choices if any, and the answer."""

    name: str
    label: str
    choices: Sequence[str]
    answer: str
    is_wrong: bool


def detail_questions(page: PayerPage, name: str) -> list[DetailQuestion]:
    """Return the questions of an offered method, with the answers of the form; empty for other names."""
    if name not in offered_methods(page.project.settings, page.order):
        return []
    fields = METHODS_BY_NAME[page.project.settings.method(name) or ""].capabilities.details
    sent = {field.name: page.call.request.form.get(field.name, "").strip() for field in fields}
    needed = _detail_problems(page, name, {})
    wrong = _detail_problems(page, name, {field: answer for field, answer in sent.items() if answer})
    return [
        DetailQuestion(
            field.name,
            page.language.label(field.label) if field.label is not None else field.name.replace("_", " "),
            field.choices or needed.get(field.name, ()),
            sent[field.name],
            field.name in wrong,
        )
        for field in fields
        if field.name in {*needed, *wrong}
    ]


def _detail_problems(page: PayerPage, name: str, details: Mapping[str, str]) -> dict[str, Sequence[str]]:
    settings, terms = page.project.settings, page.project.epoch.terms(page.project.now())
    violations = detail_violations(settings, terms, page.order, name, details)
    return {violation.path: violation.allowed or () for violation in violations}


def _show_questions(
    page: PayerPage, chosen: str, questions: list[DetailQuestion], *, is_answered: bool
) -> Response:
    """Ask for the details of a method, or for the method if there is nothing to ask (GEN-03, GEN-04)."""
    settings, choices = page.project.settings, []
    for name in offered_methods(settings, page.order):
        method = METHODS_BY_NAME[settings.method(name) or ""].capabilities
        hint = page.language.label(method.hint) if method.hint is not None else ""
        choices.append(MethodChoice(name, page.language.label(method.labels), hint, method.icon))
    if not questions:
        return show(page, "choose", choices=choices, panel=panel(page))
    icon = next(choice.icon for choice in choices if choice.name == chosen)
    names = {issuer.id: issuer.name for issuer in page.project.settings.banks}
    facts = {"chosen": chosen, "questions": questions, "icon": icon, "names": names, "panel": panel(page)}
    return show(page, "details", 400 if is_answered else 200, is_answered=is_answered, **facts)


OUTCOME_PREFIXES: Final = {
    OrderStatus.COMPLETED: "paid",
    OrderStatus.ACCEPTED: "authorized",
    OrderStatus.CANCELLED: "cancelled",
    OrderStatus.EXPIRED: "expired",
    OrderStatus.ERROR: "failed",
}
ICONS: Final = {"paid": "paid", "authorized": "paid", "invoice": "paid", "refunded": "paid", "open": "open"}


def outcome_prefix(page: PayerPage) -> str:
    """Return the prefix of the phrases for an outcome; ``open`` for an order that has not ended."""
    order = page.order
    prefix = OUTCOME_PREFIXES.get(OrderStatus(order.status), "open")
    if prefix not in ("paid", "authorized"):
        return prefix
    if order.refunds and refundable_cents(order) <= 0:
        return "refunded"
    newest = order.last_transaction
    if newest is not None and METHODS_BY_NAME[newest.method].capabilities.page == INVOICE:
        return "invoice"
    return "authorized" if newest is not None and newest.is_capturable else prefix


@stated(**PAGE_METADATA)
def get_order_page(call: Call, project_id: str, order_id: str) -> Response:
    """Show the payment methods for an order, or its result (GEN-03)."""
    page = find_page(call, project_id, order_id)
    if not page.can_choose_method:
        newest = page._replace(attempt=page.order.last_transaction)
        if not page.order.is_hosted and newest.attempt is not None and not newest.has_attempt_ended:
            return redirect_to_next(newest)
        return return_to_shop(page) if page.shop_url is not None else _show_result(page)
    if call.request.method == "GET":
        require_babel()
        if page.order.last_transaction is None:
            page.call.hold_webhooks()
            act_on_order(page.project, page.order.id, Action(CUSTOMER, "visit"), VIA_PAGE)
        else:
            record_visit(page)
    page = page.reload()
    chosen = call.request.args.get("details", "")
    return _show_questions(page, chosen, detail_questions(page, chosen), is_answered=False)


def _show_result(page: PayerPage) -> Response:
    outcome, webhooks = outcome_prefix(page), _delivery_counts(page)
    newest = page.order.last_transaction
    reason = newest.reason if newest is not None and newest.reason is not None else page.order.reason
    return show(
        page,
        "result",
        ending=outcome,
        icon=ICONS.get(outcome, "failed"),
        reason=translate_reason(reason, page.language.tag) if reason is not None else None,
        webhooks=webhooks,
    )


class DeliveryCounts(NamedTuple):
    """The numbers of an order's webhooks, whether one is pending, and the last failure."""

    created: int
    delivered: int
    is_pending: bool
    problem: str | None

    @property
    def is_complete(self) -> bool:
        """Whether the shop has received every webhook."""
        return 0 < self.created == self.delivered


def _delivery_counts(page: PayerPage) -> DeliveryCounts:
    webhooks = list(page.project.epoch.store.deliveries_of(page.order.id))
    if not webhooks:
        unsent = sum(each.order_id == page.order.id for each in page.project.epoch.unsent_webhooks())
        return DeliveryCounts(unsent, 0, False, "no webhook address" if unsent else None)
    delivered = sum(webhook.outcome == DeliveryState.DELIVERED for webhook in webhooks)
    failed = [
        webhook.delivery_attempts[-1].reply
        for webhook in webhooks
        if webhook.outcome != DeliveryState.DELIVERED and webhook.delivery_attempts
    ]
    problem = (failed[-1].fault or failed[-1].error or f"HTTP {failed[-1].status}") if failed else None
    is_pending = any(webhook.state is DeliveryState.PENDING for webhook in webhooks)
    return DeliveryCounts(len(webhooks), delivered, is_pending, problem)


@stated(**FORM_FACTS)
def post_order_page(call: Call, project_id: str, order_id: str) -> Response:
    """Choose a payment method (SET-18)."""
    page = find_page(call, project_id, order_id)
    chosen = call.request.form.get("payment_method", "")
    if not page.is_own_post():
        return redirect(page.url("get_order_page", notice="stale"))
    newest, count = page.order.last_transaction, len(page.order.transactions)
    is_older = call.request.form.get("attempts", count, type=int) < count
    if newest is not None and is_older and newest.payment_method == chosen:  # the form was sent twice
        return redirect_to_next(page._replace(attempt=newest))
    if call.request.form.get("action") in (EXPIRE_BUTTON, "cancel"):
        return _end_order(page, call.request.form["action"])
    questions = detail_questions(page, chosen)
    if any(question.is_wrong for question in questions):
        if "details" not in page.call.request.form:
            return redirect(page.url("get_order_page", details=chosen))
        return _show_questions(page, chosen, questions, is_answered=True)
    page.call.hold_webhooks()
    details = {question.name: question.answer for question in questions if question.answer}
    action = Action(CUSTOMER, "choose", payment_method=chosen, issuer_id=details.get("issuer_id"))
    try:
        order = act_on_order(page.project, page.order.id, action, VIA_PAGE, details)
    except (ActionNotPossible, Invalid):
        return redirect(page.url("get_order_page", notice="stale"))
    return redirect_to_next(page.reload()._replace(attempt=order.last_transaction))


def _end_order(page: PayerPage, button: str) -> Response:
    """End the order for the tester: expire it by moving the clock, or cancel it as the shop."""
    if button == "cancel":
        page.call.hold_webhooks()
        with suppress(OrderNotCancellable):
            act_as_merchant(page.project, page.order.id, "cancel", None, VIA_PAGE)
        return redirect(page.url("get_order_page"))
    expires_at = expiry(page)
    if expires_at is not None:
        change_clock(page.project, now=expires_at)
    return redirect_to_next(page.reload())


@stated(**PAGE_METADATA)
def get_payment(call: Call, project_id: str, order_id: str, transaction_id: str) -> Response:
    """Show the page of an attempt, or redirect if it has ended (GEN-06)."""
    page = find_page(call, project_id, order_id, transaction_id)
    if call.request.method == "GET":
        page = attempt_page.enter(page)
    return redirect_to_next(page) if page.has_attempt_ended else attempt_page.show_attempt(page)


@stated(**FORM_FACTS)
def post_payment(call: Call, project_id: str, order_id: str, transaction_id: str) -> Response:
    """Pay, fail or cancel the attempt, or act as the bank or the screening."""
    page = find_page(call, project_id, order_id, transaction_id)
    name = call.request.form.get("action", "")
    if page.is_own_post() and name == EXPIRE_BUTTON:
        return _end_order(page, name)
    if not page.is_own_post() or name not in BUTTONS or BUTTONS[name].name not in page.actions:
        return _show_current(page)
    pressed = attempt_page.press_pay(page) if name == PAY_BUTTON else BUTTONS[name]
    if isinstance(pressed, Response):
        return pressed
    reason = call.request.form.get("reason")
    if name == "fail" and reason in FAILURE_REASONS:
        pressed = pressed._replace(reason=reason)
    return _act(page, pressed)


def _act(page: PayerPage, action: Action) -> Response:
    page.call.hold_webhooks()
    return redirect_to_next(attempt_page.perform(page, action))


def _show_current(page: PayerPage) -> Response:
    return (
        redirect_to_next(page)
        if page.has_attempt_ended
        else redirect(page.url("get_payment", notice="stale"))
    )


@stated(**PAGE_METADATA)
def get_secure(call: Call, project_id: str, order_id: str, transaction_id: str) -> Response:
    """Show the 3-D Secure step (GPAY-03, CARD-07)."""
    page = find_page(call, project_id, order_id, transaction_id)
    subject = secure_subject(page, call.request.args)
    if page.has_attempt_ended or subject is None:
        return _show_current(page)
    card, authorization = subject
    return show(page, "secure", card=card, authorization=authorization, panel=panel(page), look="secure")


@stated(**FORM_FACTS)
def post_secure(call: Call, project_id: str, order_id: str, transaction_id: str) -> Response:
    """Complete the 3-D Secure step."""
    page = find_page(call, project_id, order_id, transaction_id)
    subject = secure_subject(page, call.request.form)
    action = secure_action(call.request.form.get("action"), *subject) if subject is not None else None
    if action is None or not page.is_own_post() or action.name not in page.actions:
        return _show_current(page)
    return _act(page, action)


@stated(**PAGE_METADATA)
def get_scan(call: Call, project_id: str, order_id: str, transaction_id: str) -> Response:
    """Show the confirmation page of a wallet app after the scan (WQR-01)."""
    page = find_page(call, project_id, order_id, transaction_id)
    if attempt_page.kind_of(page) != "scan":
        raise Unknown("this page does not exist")
    page = attempt_page.enter(page) if call.request.method == "GET" else page
    if page.has_attempt_ended:
        return redirect_to_next(page)
    return show(page, "confirm", panel=panel(page), look="wallet")


@stated(group="pages", media_type="image/svg+xml", errors=(404,))
def get_code(call: Call, project_id: str, order_id: str, transaction_id: str) -> Response:
    """Get the QR code that a wallet app scans."""
    page = find_page(call, project_id, order_id, transaction_id)
    if attempt_page.kind_of(page) != "scan":
        raise Unknown("this page does not exist")
    address = scan_url(page.project, page.order, attempt_page.attempt_of(page))
    return Response(qr_svg(address), mimetype="image/svg+xml")


@stated(group="pages", answers=StateVersion, errors=(404,))
def get_state(call: Call, project_id: str, order_id: str, transaction_id: str) -> Response:
    """Get a number that changes with the order and its webhooks; waiting pages poll it."""
    page = find_page(call, project_id, order_id, transaction_id)
    return json_answer({"state": page.state})


@stated(**PAGE_METADATA)
def get_still_open(call: Call, project_id: str, order_id: str, transaction_id: str) -> Response:
    """Show the notice that a payment is still open."""
    page = find_page(call, project_id, order_id, transaction_id)
    return redirect_to_next(page) if page.has_attempt_ended else show(page, "still_open")


@stated(**PAGE_METADATA)
def get_result(call: Call, project_id: str, order_id: str) -> Response:
    """Show the result of a payment without a return_url (FLOW-16)."""
    page = find_page(call, project_id, order_id)
    return _show_result(page)


@stated(**PAGE_METADATA)
def get_back(call: Call, project_id: str, order_id: str) -> Response:
    """Redirect the customer to the shop, and record the return (FLOW-14)."""
    page = find_page(call, project_id, order_id)
    is_head_request = call.request.method == "HEAD" and page.shop_url is not None
    return redirect(str(page.shop_url)) if is_head_request else return_to_shop(page)
