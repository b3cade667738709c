"""The refusals that both screened methods share."""

from typing import Final

from payment_sandbox.methods.common.base import Move, TriggerValue
from payment_sandbox.orders.statuses import Trigger

DECLINES: Final = (
    TriggerValue({"screening": "declined"}, "declined"),
    TriggerValue({"screening": "declined"}, amount=66601),
)
DECLINED: Final = "The screening declined this customer"
ERROR: Final = "We could not check your details. Please correct your address and try again."


def declined(reason: str | None) -> Move:
    """The customer is not accepted (ERR-02)."""
    return Move(Trigger.DECLINE, reason or DECLINED)


def erred(reason: str | None) -> Move:
    """An error that the customer can fix; the text is for the customer (ERR-01)."""
    return Move(Trigger.FAIL, reason or ERROR, reason or ERROR)
