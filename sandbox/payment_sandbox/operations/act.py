"""Actions by a customer, bank, screening or processor: one engine for pages, API calls and scenarios."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Final

from payment_sandbox.methods import METHODS_BY_NAME, behaviour_of
from payment_sandbox.methods.common import CHOOSE, CREDIT, VISIT, AttemptDraft, Terms
from payment_sandbox.operations.apply_steps import apply_steps
from payment_sandbox.operations.attempts import begin_attempt, offered_methods
from payment_sandbox.operations.cancel import uncancellable_reason
from payment_sandbox.operations.refund import refunds_by_lines, restore_refundable
from payment_sandbox.operations.update import ALWAYS_UPDATABLE_KEYS, is_sum_open
from payment_sandbox.orders.actions import BANK, CUSTOMER, Action
from payment_sandbox.orders.amounts import Cents
from payment_sandbox.orders.authorization import EntryStyle
from payment_sandbox.orders.lines import OrderLine
from payment_sandbox.orders.order import Order
from payment_sandbox.orders.refunds import (
    lines_by_status,
    refundable_by_amount_cents,
    refundable_cents,
    refundable_quantities,
)
from payment_sandbox.orders.refusals import (
    ActionNotPossible,
    Invalid,
    NotCompletableInTestMode,
    Refusal,
    Unknown,
    Violation,
)
from payment_sandbox.orders.statuses import OrderStatus, Trigger
from payment_sandbox.orders.transaction import Transaction
from payment_sandbox.projects.caller import NO_CALLER
from payment_sandbox.projects.edit import Edit
from payment_sandbox.projects.journal import VIA_CONTROL, VIA_PAGE, VIA_SCENARIO
from payment_sandbox.projects.project import Project
from payment_sandbox.projects.rehearsal import OrderAction
from payment_sandbox.projects.settings import Settings

METHOD_CHANGED: Final = "The customer chose another method"


def act(
    project: Project,
    order_id: str,
    action: Action,
    via: str = VIA_CONTROL,
    details: Mapping[str, str] = MappingProxyType({}),
) -> Order:
    """Perform an action on an order's newest attempt; ``via`` is its channel.

    ``details`` are the customer's answers on the hosted page when choosing a method.

    Raises:
        Unknown: the order does not exist.
        ActionNotPossible: the order's state forbids the action; ``allowed`` lists the possible actions.
        Invalid: the method, issuer or card is unknown.
    """
    step = OrderAction(order_id, action)
    return project.epoch.rehearsal.perform(step, partial(_act, project, via, details))


def _act(project: Project, via: str, details: Mapping[str, str], step: OrderAction) -> Order:
    order_id, action = step
    with project.edit() as edit:
        order = edit.order(order_id)
        attempt = _addressed_attempt(order, action)
        if action.name not in possible_actions(order, edit.terms):
            _refuse(edit, order, attempt, action)
        edit.record_action(
            action, via, order_id, attempt.id if attempt is not None and action.name != CHOOSE else None
        )
        if action.name == CHOOSE:
            _choose(edit, order, action, details)
        elif attempt is None:
            order.page_visited = True
        else:
            perform(edit, order, attempt, action)
    return order


def _addressed_attempt(order: Order, action: Action) -> Transaction | None:
    """Return the newest attempt or, for a bank, the newest transfer."""
    transfers = [attempt for attempt in order.transactions if _is_transfer(attempt)]
    return transfers[-1] if transfers and action.actor == BANK else order.last_transaction


def _is_transfer(attempt: Transaction) -> bool:
    return behaviour_of(attempt).capabilities.page == "transfer"


def act_on_attempt(
    project: Project, order_id: str, transaction_id: str, action: Action, via: str = VIA_PAGE
) -> Order:
    """Perform an action on any attempt of an order.

    Raises:
        Unknown: the attempt does not exist.
        ActionNotPossible: the attempt's state does not allow the action.
    """

    def perform(step: OrderAction) -> Order:
        with project.edit() as edit:
            return perform_on_attempt(edit, order_id, transaction_id, step.action, via)

    return project.epoch.rehearsal.perform(OrderAction(order_id, action), perform)


def perform_on_attempt(
    edit: Edit, order_id: str, transaction_id: str, action: Action, via: str = VIA_SCENARIO
) -> Order:
    """Perform an action on an attempt, within an edit."""
    order = edit.order(order_id)
    attempt = order.transaction(transaction_id)
    if attempt is None:
        raise Unknown(f"order {order_id} has no transaction {transaction_id!r}")
    if action.name not in behaviour_of(attempt).actions(attempt, edit.terms):
        _refuse(edit, order, attempt, action)
    edit.record_action(action, via, order_id, transaction_id)
    perform(edit, order, attempt, action)
    return order


def perform(edit: Edit, order: Order, attempt: Transaction, action: Action) -> None:
    """Perform a possible action; an action by the customer implies a visit to the page."""
    behaviour = behaviour_of(attempt)
    if action.actor == CUSTOMER:
        apply_steps(edit, order, attempt, behaviour.visit(attempt, edit.terms))
        attempt.visited = True
    if action.name != VISIT:
        apply_steps(edit, order, attempt, behaviour.finish(attempt, action, edit.terms))
    if order.is_refund:
        restore_refundable(edit, order)


def possible_actions(order: Order, terms: Terms) -> list[str]:
    """Return the names of all currently possible actions on the order."""
    attempt = order.last_transaction
    names = list(behaviour_of(attempt).actions(attempt, terms)) if attempt is not None else []
    # received money prevents a new attempt
    is_choice_open = attempt is None or not attempt.credited_cents
    if is_choice_open and _is_page_open(order, terms) and CHOOSE not in names:
        names += [CHOOSE] if attempt is not None else [VISIT, CHOOSE]
    others = (behaviour_of(other).actions(other, terms) for other in order.transactions[:-1])
    return names + [CREDIT] * (CREDIT not in names and any(CREDIT in actions for actions in others))


def _is_page_open(order: Order, terms: Terms) -> bool:
    is_expired = order.expires_at is None or order.expires_at <= terms.now
    return order.is_hosted and order.is_open and not is_expired


LIVE_MODE_ADVICE: Final = (
    "set the project's mode to live (in pytest, @pytest.mark.payment_settings(mode='live'))"
)


def _refuse(edit: Edit, order: Order, attempt: Transaction | None, action: Action) -> None:
    possible = possible_actions(order, edit.terms)
    refusal: type[ActionNotPossible] = ActionNotPossible
    state = f"order {order.id} is {order.status}"
    if attempt is not None:
        state = f"{state}, its {attempt.payment_method} transaction {attempt.status}"
        if (
            action.actor == BANK
            and edit.settings.is_test
            and not METHODS_BY_NAME[attempt.method].capabilities.completes_in_test
        ):
            refusal = NotCompletableInTestMode
            state = f"{state}; test mode never completes a {attempt.payment_method}: {LIVE_MODE_ADVICE}"
    possible_names = ", ".join(possible) or "nothing"
    raise refusal(
        f"{action.name} is not possible: {state}; possible now: {possible_names}",
        [name.split()[1] for name in possible],
    )


def detail_violations(
    settings: Settings, terms: Terms, order: Order, name: str, details: Mapping[str, str]
) -> list[Violation]:
    """Return the missing and wrong details for an order's payment with a method; paths are field names."""
    draft = AttemptDraft("", order.amount_cents, details, None)
    violations = METHODS_BY_NAME[settings.method(name) or ""].check(draft, terms)
    return [violation._replace(path=violation.path.rsplit(".", 1)[-1]) for violation in violations]


def _choose(edit: Edit, order: Order, action: Action, answers: Mapping[str, str]) -> None:
    """Start an attempt with the method picked on the hosted page; cancel the open attempt, if any (A22).

    A transfer that was chosen before is continued with its reference, until its period is over.
    """
    names = offered_methods(edit.settings, order)
    if action.payment_method is None or action.payment_method not in names:
        raise Invalid([Violation("payment_method", "must be a method that the page offers", names)])
    details = {"issuer_id": action.issuer_id or edit.settings.banks[0].id, **answers}
    violations = detail_violations(edit.settings, edit.terms, order, action.payment_method, details)
    if violations:
        raise Invalid(violations)
    known = _known_transfer(edit, order, action.payment_method)
    open_attempt = order.last_transaction
    if open_attempt is not None and open_attempt.is_open and open_attempt is not known:
        edit.move_transaction(open_attempt, Trigger.CANCEL)
        open_attempt.reason = METHOD_CHANGED
    if known is not None:
        _continue_transfer(edit, order, known)
        return
    order.page_visited = True
    if order.status == OrderStatus.NEW:
        edit.move_order(order, Trigger.VISIT)
    attempt = begin_attempt(
        edit, order, {"payment_method": action.payment_method, "payment_method_details": details}
    )
    apply_steps(edit, order, attempt, behaviour_of(attempt).visit(attempt, edit.terms))
    attempt.visited = True


def _known_transfer(edit: Edit, order: Order, name: str) -> Transaction | None:
    """Find the transfer that was chosen before and can be continued."""
    method = edit.settings.method(name)
    known = (t for t in order.transactions if t.method == method and t.expires_at > edit.now)
    return next(filter(_is_transfer, known), None)


def _continue_transfer(edit: Edit, order: Order, transfer: Transaction) -> None:
    """Make a transfer the newest attempt, pending again."""
    others = (attempt for attempt in order.transactions if attempt is not transfer)
    order.transactions = (*others, transfer)
    if not transfer.is_open:
        edit.move_transaction(transfer, Trigger.PEND)
        transfer.reason = None


UPDATABLE_KEY_LIST: Final = ", ".join(ALWAYS_UPDATABLE_KEYS)


def possible_calls(order: Order) -> list[str]:
    """List the calls currently accepted by the merchant API, with limits in cents."""
    possible = [*_possible_captures_and_voids(order), *_possible_refunds(order)]
    if uncancellable_reason(order) is None:
        possible.append("cancel")
    possible.append(f"update {UPDATABLE_KEY_LIST}{', amount, order_lines' if is_sum_open(order) else ''}")
    return possible


def _possible_captures_and_voids(order: Order) -> Iterator[str]:
    attempt = order.last_transaction
    authorization = attempt.authorization if attempt is not None else None
    if attempt is None or authorization is None or not authorization.is_open:
        return
    remaining_cents = authorization.remaining_cents
    fits = _has_item_within(authorization.lines, lines_by_status(order).remaining, remaining_cents)
    if attempt.is_capturable:
        style = authorization.capture_style
        yield f"capture in full ({remaining_cents})"
        if style in (None, EntryStyle.AMOUNT):
            yield f"capture by amount up to {remaining_cents}"
        if style in (None, EntryStyle.LINES) and fits:
            yield "capture by order lines"
    yield f"void by amount up to {remaining_cents}"
    if fits:
        yield "void by order lines"


def _possible_refunds(order: Order) -> Iterator[str]:
    remaining_cents = refundable_cents(order)
    if remaining_cents <= 0 or order.is_refund:
        return
    by_amount_cents = refundable_by_amount_cents(order) if refunds_by_lines(order) else remaining_cents
    if by_amount_cents:
        yield f"refund up to {by_amount_cents}"
    by_lines_cents = remaining_cents - by_amount_cents
    if _has_item_within(order.order_lines, refundable_quantities(order), by_lines_cents):
        yield "refund by order lines"


def _has_item_within(
    lines: Sequence[OrderLine], remaining: Mapping[int, int], remaining_cents: Cents
) -> bool:
    """Whether at least one item of a line can still be captured, voided or refunded."""
    return any(
        quantity > 0 and 0 < lines[index].amount_cents <= remaining_cents
        for index, quantity in remaining.items()
    )


def status_after(project: Project, order_id: str, transaction_id: str, action: Action) -> str | None:
    """Return the order status after an action, without performing the action; None if impossible."""
    epoch = project.epoch
    edit = Edit(epoch, epoch.now(), epoch.now(), NO_CALLER)  # never applied
    try:
        return perform_on_attempt(edit, order_id, transaction_id, action).status
    except Refusal:
        return None
