"""What if …: replays of an order with one variation each."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from payment_sandbox.methods import METHODS_BY_NAME
from payment_sandbox.methods.common import BANK_PAGES
from payment_sandbox.operations.act import act
from payment_sandbox.operations.agenda import entries_of
from payment_sandbox.operations.by_hand import act_as_merchant
from payment_sandbox.operations.move_clock import advance_clock
from payment_sandbox.orders.actions import CUSTOMER, Action
from payment_sandbox.orders.order import Order
from payment_sandbox.orders.refusals import Invalid, Violation
from payment_sandbox.projects.project import Project
from payment_sandbox.scenarios.effects import WebhookEffect
from payment_sandbox.scenarios.variation import OfferedIn, VariationEffect, VariationOffer
from payment_sandbox.scenarios.variation_catalogue import CAPTURES_IN_PARTS, LAPSES, WALKS_AWAY, offers_in

Json = dict[str, Any]

UNPAID_EXPIRIES: Final = ("expiry", "page-expiry")
EXPIRIES: Final = (*UNPAID_EXPIRIES, "authorization-expiry")
PAYABLE_PAGES: Final = (*BANK_PAGES, "terms")
WEBHOOKS: Final = "webhooks"
WEBHOOKS_SECONDS: Final = 12.0  # two attempts with timeouts
SHORTEST_PERIOD: Final = "PT1M"
PAY_ACTION: Final = Action(CUSTOMER, "pay")


def playable_variations(order: Order, *, has_webhook_url: bool) -> list[VariationOffer]:
    """List the playable variations of an order; variations of webhooks need a webhook URL."""
    attempt = order.last_transaction
    is_payable = attempt is not None and METHODS_BY_NAME[attempt.method].capabilities.page in PAYABLE_PAGES
    is_captured = attempt is not None and attempt.authorization is not None and order.amount_cents > 1

    def is_possible(effect: VariationEffect | None) -> bool:
        if effect in (CAPTURES_IN_PARTS, LAPSES):
            return is_payable and is_captured
        if isinstance(effect, WebhookEffect):
            return is_payable and has_webhook_url
        return is_payable or effect is WALKS_AWAY

    return [offer for offer in offers_in(OfferedIn.WHAT_IF).values() if is_possible(offer.effect)]


def replay_with(
    project: Project, order: Order, name: str, body: Mapping[str, Any], create: Callable[[Json], Order]
) -> Order:
    """Create a copy of an order from its original ``body``, and play a variation on it.

    For an expiry, the copy gets the shortest period, so that no other events run.

    Raises:
        Invalid: the variation is unknown.
        Refusal: the new order does not allow the variation.
    """
    effect, attempt = _find_effect(name), order.last_transaction
    replayed = create(_with_short_expiry(body) if effect in (WALKS_AWAY, LAPSES) else dict(body))
    if replayed.last_transaction is None and attempt is not None and effect is not WALKS_AWAY:
        act(project, replayed.id, Action(CUSTOMER, "choose", payment_method=attempt.payment_method))
    if effect is WALKS_AWAY:
        expire(project, replayed)
    elif isinstance(effect, Action):
        act(project, replayed.id, effect)
    else:
        _pay(project, replayed.id, effect.document if isinstance(effect, WebhookEffect) else {})
    if effect is CAPTURES_IN_PARTS:
        _capture_in_parts(project, replayed)
    if effect is LAPSES:
        expire(project, replayed)
    project.settle(WEBHOOKS_SECONDS, orders=[replayed.id])
    return project.find_order(replayed.id)


def _find_effect(name: str) -> VariationEffect | None:
    known = offers_in(OfferedIn.WHAT_IF)
    if name not in known:
        raise Invalid([Violation("again", f"must be one of: {', '.join(known)}", list(known))])
    return known[name].effect


def _with_short_expiry(body: Mapping[str, Any]) -> Json:
    """Change a body so that the page and the first attempt expire soon."""
    soon = {"expiration_period": SHORTEST_PERIOD}
    attempts = body.get("transactions") or []
    return {**body, **soon, **({"transactions": [{**each, **soon} for each in attempts]} if attempts else {})}


def expire(project: Project, order: Order) -> None:
    """Advance the clock exactly to the last expiry of an order."""
    ends = [due.at for due in entries_of(project.epoch, order) if due.item.kind in EXPIRIES]
    if ends:
        advance_clock(project, {"to": max(ends)})


def _capture_in_parts(project: Project, order: Order) -> None:
    half = order.amount_cents // 2
    for part_cents in (half, order.amount_cents - half):
        act_as_merchant(project, order.id, "capture", part_cents)


def _pay(project: Project, order_id: str, effect: Mapping[str, Any]) -> None:
    """Pay an order with an effect on its webhooks; the effect's rule takes precedence over existing rules.

    The rule names the order, so that it affects no other webhooks. The rule ends with the order, even if the
    server crashes, or if the webhooks are slower than this call.
    """
    rule = {"when": {"order_id": order_id, "attempt": 1}, "then": dict(effect)}
    if effect:
        project.change_faults(lambda faults: faults.with_rules(WEBHOOKS, [rule, *faults.document[WEBHOOKS]]))
    try:
        act(project, order_id, PAY_ACTION)
        project.settle(WEBHOOKS_SECONDS, orders=[order_id])
    finally:
        if effect and _is_rule_applied(project, order_id):
            project.change_faults(lambda faults: faults.without_orders({order_id}))


def _is_rule_applied(project: Project, order_id: str) -> bool:
    """Whether the rule has affected all webhooks of an order."""
    deliveries = project.epoch.store.deliveries_of(order_id)
    return all(delivery.attempts or delivery.postponed for delivery in deliveries)
