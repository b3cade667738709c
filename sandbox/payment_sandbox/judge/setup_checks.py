"""Checks on the setup: no webhook URL, mixed schemes, and scenario rules that never matched."""

import json
from collections.abc import Iterator
from typing import Any, Final
from urllib.parse import urlsplit

from payment_sandbox.judge.evidence import (
    HINT,
    MADE_STATUSES,
    Finding,
    ReviewedHistory,
    format_attempt,
    format_request,
    parse_object,
)
from payment_sandbox.judge.lessons import UNMATCHED_RULES_PAGE
from payment_sandbox.orders.webhooks import LISTEN
from payment_sandbox.projects.default_scenario import DEFAULT_NAME
from payment_sandbox.projects.epoch import Epoch
from payment_sandbox.projects.journal import RecordedDecision

PLAIN_HTTP_ERROR: Final = "serves plain http"


def find_missing_webhook_url(epoch: Epoch, count: int) -> Iterator[Finding]:
    """Report status changes for which no webhook URL was set."""
    if count and epoch.state.settings.webhook_url is None:
        changes = "A status change" if count == 1 else f"{count} status changes"
        yield Finding(
            "HOOK-03",
            f"{changes} sent no webhook: neither the project nor the order has a webhook_url",
            f"{LISTEN} an address, and set webhook_url to it, in the order or in the project's settings.",
            None,
            (),
            risk="the shop does not learn of payments",
        )


def find_missing_slashes(history: ReviewedHistory) -> Iterator[Finding]:
    """Report requests without the final slash of their path, once for the project."""
    entries = [entry for entry in history.requests if not entry.path.endswith("/")]
    if entries:
        yield Finding(
            "SET-01",
            "Your shop calls paths without their final slash, which not every service of this family accepts",
            "Write the paths as documented, with a final slash: /v1/orders/.",
            None,
            (format_request(entries[0]),),
            kind=HINT,
            shown_by=(entries[0].id,),
        )


def find_mixed_schemes(history: ReviewedHistory) -> Iterator[Finding]:
    """Find shop URLs with mixed or wrong schemes."""
    for entry in history.requests:
        is_accepted = entry.method in ("POST", "PUT") and entry.status in MADE_STATUSES
        if is_accepted and b"http:" in entry.request and len(_schemes(parse_object(entry.request))) > 1:
            yield Finding(
                "HOOK-04",
                "The return_url and webhook_url of the same host mix http and https",
                "Build both from the base address that customers see.",
                entry.order_id,
                (format_request(entry),),
            )
    for webhook in history.webhooks:
        wrong = [
            attempt
            for attempt in webhook.delivery_attempts
            if PLAIN_HTTP_ERROR in (attempt.reply.error or "")
        ]
        if wrong:
            yield Finding(
                "HOOK-04",
                f"The webhook_url uses https, but your shop serves plain http at that address: {webhook.url}",
                "Use the scheme that the shop serves at this address.",
                webhook.order_id,
                tuple(map(format_attempt, wrong)),
            )


def _schemes(order: dict[str, Any]) -> set[str]:
    """Return the schemes of an order's URLs; empty if their hosts differ."""
    parts = [
        urlsplit(order[name])
        for name in ("return_url", "webhook_url")
        if isinstance(order.get(name), str) and "://" in order[name]
    ]
    return {part.scheme for part in parts} if len({part.netloc.lower() for part in parts}) == 1 else set()


def find_unmatched_rules(epoch: Epoch) -> Iterator[Finding]:
    """Report the active scenario's rules that never matched, once there are attempts."""
    scenario, uses = epoch.state.scenario, epoch.state.rule_uses
    if scenario.name == DEFAULT_NAME or not epoch.journal.of(RecordedDecision):
        return
    unmatched = tuple(
        f"rule {index + 1}: when {json.dumps(rule.get('when', {}))}"
        for index, rule in enumerate(scenario.document.get("rules", ()))
        if not uses.get(index)
    )
    if unmatched:
        rules = "A rule" if len(unmatched) == 1 else f"{len(unmatched)} rules"
        yield Finding(
            "SCN-02",
            f"{rules} of the scenario {scenario.name!r} never matched",
            "Create orders that match, or change the conditions: the test does not cover these rules.",
            None,
            unmatched,
            HINT,
            page=UNMATCHED_RULES_PAGE,
        )
