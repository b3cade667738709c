"""Mistakes in the set-up: no webhook address, schemes that differ, and scenario rules that match nothing."""

import json
from collections.abc import Iterator
from typing import Any, Final
from urllib.parse import urlsplit

from payment_sandbox.operations.review.evidence import (
    HINT,
    Finding,
    Reviewed,
    as_object,
    line_of,
    line_of_attempt,
)
from payment_sandbox.operations.review.lessons import SCENARIOS
from payment_sandbox.orders.statuses import OrderStatus
from payment_sandbox.projects.default_scenario import DEFAULT
from payment_sandbox.projects.epoch import Epoch
from payment_sandbox.projects.journal import JournalEntry, RecordedDecision

ACCEPTED: Final = (200, 201)  # their addresses are valid
PLAIN_ON_TLS: Final = "speaks plain http"


def unreported_changes(epoch: Epoch) -> int:
    """How many changes of statuses had no webhook: neither order nor project has an address."""
    if epoch.state.settings.webhook_url is not None:
        return 0
    changed = [
        reached.order_id
        for reached in list(epoch.journal.statuses)
        if reached.payment_method is None and reached.status != OrderStatus.NEW
    ]
    silent = {order_id for order_id in set(changed) if _is_silent(epoch, order_id)}
    return sum(order_id in silent for order_id in changed)


def _is_silent(epoch: Epoch, order_id: str) -> bool:
    order = epoch.store.order(order_id)
    return order is not None and order.webhook_url is None and not epoch.store.deliveries_of(order_id)


def unreported(reviewed: Reviewed) -> Iterator[Finding]:
    """Statuses changed, and there was no address to send a webhook to."""
    count = reviewed.unreported
    if count:
        changes = "A status change" if count == 1 else f"{count} status changes"
        yield Finding(
            "HOOK-03",
            f"{changes} sent no webhook: neither the project nor the order has a webhook_url",
            "Set webhook_url in the order or in the project's settings; in tests, deliver_to(app) does it.",
            None,
            (),
        )


def mixed_schemes(reviewed: Reviewed) -> Iterator[Finding]:
    """The shop's addresses say http where it speaks https, or the other way round."""
    for entry in filter(_has_addresses, reviewed.requests):
        if len(_schemes(as_object(entry.request))) > 1:
            yield Finding(
                "HOOK-04",
                "The return_url and webhook_url of the same host mix http and https",
                "Build both from one base address, the one that customers see.",
                entry.order_id,
                (line_of(entry),),
            )
    for webhook in reviewed.webhooks:
        wrong = [attempt for attempt in webhook.tries if PLAIN_ON_TLS in (attempt.reply.error or "")]
        if wrong:
            yield Finding(
                "HOOK-04",
                f"The webhook_url says https, but your shop speaks http there: {webhook.url}",
                "Use the scheme that the shop speaks at this address.",
                webhook.order_id,
                tuple(map(line_of_attempt, wrong)),
            )


def _has_addresses(entry: JournalEntry) -> bool:
    """Whether it made or changed an order with an address that is not secure."""
    return entry.method in ("POST", "PUT") and entry.status in ACCEPTED and b"http:" in entry.request


def _schemes(order: dict[str, Any]) -> set[str]:
    """The schemes of an order's addresses, if they have the same host."""
    parts = [
        urlsplit(order[name])
        for name in ("return_url", "webhook_url")
        if isinstance(order.get(name), str) and "://" in order[name]
    ]
    return {part.scheme for part in parts} if len({part.netloc.lower() for part in parts}) == 1 else set()


def unmatched_rules(epoch: Epoch) -> tuple[str, ...]:
    """The rules of the active scenario that have decided nothing, although attempts were made."""
    state = epoch.state
    if state.scenario.name == DEFAULT or not epoch.journal.of(RecordedDecision):
        return ()
    return tuple(
        f"rule {index + 1}: when {json.dumps(rule.get('when', {}))}"
        for index, rule in enumerate(state.scenario.document.get("rules", ()))
        if not state.rule_uses.get(index)
    )


def unmatched(reviewed: Reviewed) -> Iterator[Finding]:
    """Rules of the scenario decided nothing."""
    count = len(reviewed.unmatched)
    if count:
        rules = "A rule" if count == 1 else f"{count} rules"
        yield Finding(
            "SCN-02",
            f"{rules} of the scenario {reviewed.scenario!r} never matched",
            "Make orders that they match, or change their conditions: this test does not see what they do.",
            None,
            tuple(reviewed.unmatched),
            HINT,
            page=SCENARIOS,
        )
