"""Orders for the control API and the dashboard: rows of lists, and the overview of one order."""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, cast

from payment_sandbox.judge import FindingGroup
from payment_sandbox.judge.standing import describe_service, describe_shop, is_behind, shop_statuses
from payment_sandbox.kernel.times import timestamp
from payment_sandbox.operations.act import possible_actions
from payment_sandbox.operations.agenda import entries_of, event
from payment_sandbox.operations.cancel import uncancellable_reason
from payment_sandbox.orders.actions import ACTIONS
from payment_sandbox.orders.order import Order
from payment_sandbox.orders.order_ledger import ledger_of
from payment_sandbox.orders.refunds import refundable_cents
from payment_sandbox.orders.webhooks import LOST, DeliveryState
from payment_sandbox.projects.epoch import State
from payment_sandbox.projects.journal import MERCHANT_ACTOR
from payment_sandbox.projects.project import Project
from payment_sandbox.scenarios.model import Scenario
from payment_sandbox.web.answers import records
from payment_sandbox.web.answers.control import delivery_record
from payment_sandbox.web.answers.order_tables import order_record
from payment_sandbox.web.answers.page_urls import order_url, payment_url


def order_rows(project: Project, orders: Iterable[Order]) -> Iterator[records.OrderRow]:
    """Serialize the orders of a list, each with a summary of its webhooks and what the shop knows of it."""
    read = shop_statuses(project.epoch)
    return (order_row(project, order, read.get(order.id)) for order in orders)


def order_row(project: Project, order: Order, shop_status: str | None) -> records.OrderRow:
    """Serialize an order for a list; ``shop_status`` is the last one that the shop has read."""
    attempt = order.last_transaction
    deliveries = project.epoch.store.deliveries_of(order.id)
    states = Counter(delivery.outcome for delivery in deliveries)
    return {
        "id": order.id,
        "merchant_order_id": order.merchant_order_id,
        "description": order.description,
        "status": order.status,
        "amount": order.amount_cents,
        "currency": order.currency,
        "payment_method": attempt.payment_method if attempt is not None else None,
        "customer": (order.customer or {}).get("email_address"),
        "created": timestamp(order.created),
        "modified": timestamp(order.modified),
        "flags": order.flags,
        "webhooks": {
            "pending": states[DeliveryState.PENDING],
            "delivered": states[DeliveryState.DELIVERED],
            "lost": states[LOST],
            "failed": states[DeliveryState.FAILED],
            "attempts": sum(len(delivery.attempts) for delivery in deliveries),
        },
        "service": describe_service(order, project.now()),
        "shop_status": shop_status,
        "shop": describe_shop(project.epoch, order, shop_status),
        "is_behind": is_behind(order, shop_status),
    }


def order_overview(project: Project, order: Order) -> records.OrderOverview:
    """Serialize an order or a refund with all related data."""
    epoch = project.epoch
    refunds = [epoch.find_order(refund.refund_id) for refund in order.refunds]
    pages = [order_url(project, order)] if order.is_hosted else []
    pages += [payment_url(project, order, attempt) for attempt in order.transactions if attempt.has_page]
    return {
        "order": order_record(project, order),
        "actions": actions_record(project, order),
        "decisions": list(epoch.journal.decisions(order.transactions)),
        "agenda": [event(due) for due in entries_of(epoch, order)],
        "webhooks": [
            delivery_record(delivery, project.masking)
            for order_id in (order.id, *(refund.id for refund in refunds))
            for delivery in epoch.store.deliveries_of(order_id)
        ],
        "refunds": [
            {**row, "actions": actions_record(project, refund)}
            for row, refund in zip(order_rows(project, refunds), refunds, strict=True)
        ],
        "pages": pages,
    }


def actions_record(project: Project, order: Order) -> records.Actions:
    """Return the possible actions by actor, with limits in cents for the merchant."""
    terms = project.epoch.terms(project.now())
    possible = possible_actions(order, terms)
    actions: dict[str, list[Any]] = {
        actor: [name.partition(" ")[2] for name in possible if name.startswith(f"{actor} ")]
        for actor in ACTIONS
    }
    return cast(records.Actions, {**actions, MERCHANT_ACTOR: _merchant_actions(order)})


def _merchant_actions(order: Order) -> list[records.MerchantAction]:
    reserved_cents, attempt = ledger_of(order).reserved, order.last_transaction
    is_refundable = not order.is_refund and order.paying_transaction is not None
    limits_cents = {
        "capture": reserved_cents if attempt is not None and attempt.is_capturable else 0,
        "void": reserved_cents,
        "refund": refundable_cents(order) if is_refundable else 0,
    }
    actions: list[records.MerchantAction] = [
        {"action": name, "amount_max": cents} for name, cents in limits_cents.items() if cents > 0
    ]
    if uncancellable_reason(order) is None:
        actions.append({"action": "cancel", "amount_max": None})
    return actions


def scenario_with_matches(state: State) -> dict[str, Any]:
    """Return the document of the active scenario in which each rule says how often it has matched."""
    document = state.scenario_faults.with_matches(state.scenario.document)
    rules = enumerate(document.get("rules", []))
    counted = [{**rule, "matches": state.rule_uses.get(index, 0)} for index, rule in rules]
    return {**document, "rules": counted} if "rules" in document else document


def scenario_record(project: Project, scenario: Scenario) -> records.ScenarioDetail:
    """Serialize a scenario with its rules, and their uses if it is active."""
    state = project.epoch.state
    is_active = state.scenario.name == scenario.name
    uses = state.rule_uses if is_active else {}
    document = scenario.document
    return {
        "name": scenario.name,
        "description": scenario.description,
        "is_active": is_active,
        "settings": dict(scenario.settings),
        "rules": [
            {
                "rule": index,
                "when": rule.get("when", {}),
                "then": rule["then"],
                "times": rule.get("times"),
                "uses": uses.get(index, 0),
            }
            for index, rule in enumerate(document.get("rules", ()))
        ],
        "webhooks": list(document.get("webhooks", ())),
        "faults": list(document.get("faults", ())),
    }


def group_record(group: FindingGroup) -> records.MistakeGroup:
    """Serialize the findings with the same rule and advice."""
    return {
        "name": group.name,
        "problem": group.first.problem,
        "advice": group.first.advice,
        "is_open": group.first.is_open,
        "orders": group.orders,
        "amount": group.amount,
        "risk": group.risk,
        "last_seen": timestamp(group.last_seen) if group.last_seen is not None else None,
    }
