"""The panel with which a tester decides how a payment ends, and what each end does to the order."""

from datetime import datetime
from typing import Final, NamedTuple

from payment_sandbox.methods.common.base import CANCEL, FAIL, PAY
from payment_sandbox.operations.foresee import status_after
from payment_sandbox.orders.statuses import OrderStatus
from payment_sandbox.web.pages.buttons import BUTTONS
from payment_sandbox.web.pages.payer_page import PayerPage

REASONS: Final = ("Do not honour", "Insufficient funds", "Suspected fraud", "Expired card")
EXPIRE: Final = "expire"
OTHERS: Final = ("credit", "approve", "decline", "error")


class Outcome(NamedTuple):
    """A button of the panel: its value, the key of its label, and the order's status afterwards."""

    name: str
    label: str
    status: str


class Panel(NamedTuple):
    """The whole panel; ``expires_at`` is where the clock moves if the payment is to expire."""

    outcomes: tuple[Outcome, ...]
    reasons: tuple[str, ...]
    expires_at: datetime | None


def panel(page: PayerPage) -> Panel | None:
    """The ends that are possible now; None if there are none."""
    found = [_outcome(page, name, label) for name, label in _labels(page)]
    outcomes = [outcome for outcome in found if outcome is not None]
    expires_at = expiry(page)
    if expires_at is not None:
        outcomes.append(Outcome(EXPIRE, "outcome_expire", OrderStatus.EXPIRED.value))
    if not outcomes:
        return None
    can_fail = any(outcome.name == "fail" for outcome in outcomes)
    return Panel(tuple(outcomes), REASONS if can_fail else (), expires_at)


def expiry(page: PayerPage) -> datetime | None:
    """When the order expires if nothing else happens; None if it does not."""
    order, attempt = page.order, page.attempt
    if not order.is_open:
        return None
    if order.is_hosted:
        return order.expires_at
    return attempt.expires_at if attempt is not None and attempt.is_open else None


def _labels(page: PayerPage) -> list[tuple[str, str]]:
    """The buttons, in order, with the keys of their labels."""
    if page.attempt is None:
        return []
    authorizes = page.attempt.capture_mode is not None
    ends = [
        ("pay", PAY, "outcome_authorize" if authorizes else "outcome_pay"),
        ("fail", FAIL, "outcome_fail"),
        ("cancel", CANCEL, "outcome_cancel"),
        *((name, BUTTONS[name].name, f"sandbox_{name}") for name in OTHERS),
    ]
    return [(name, label) for name, action, label in ends if action in page.actions]


def _outcome(page: PayerPage, name: str, label: str) -> Outcome | None:
    assert page.attempt is not None, "only an attempt has outcomes"
    status = status_after(page.project, page.order.id, page.attempt.id, BUTTONS[name])
    return Outcome(name, label, status) if status is not None else None
