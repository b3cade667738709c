"""Recipes for the outcomes of payments: an order, and the steps to the outcome."""

from collections.abc import Callable, Iterator, Mapping
from typing import Final, NamedTuple

from payment_sandbox.methods import BY_NAME
from payment_sandbox.methods.common import ISSUERS
from payment_sandbox.operations.coverage import (
    AUTHORIZED,
    CANCELLED,
    CAPTURED,
    CAPTURED_IN_PART,
    DECLINED,
    EXPIRED,
    PAID,
    PAID_IN_PART,
    PAID_LATE,
    REFUNDED,
    REFUNDED_IN_PART,
    VOIDED,
    possible_outcomes,
)
from payment_sandbox.operations.recipes import (
    CAPTURES,
    CREDITS,
    EXPIRES,
    LINES,
    LIVE,
    NOOR,
    PAYS,
    Json,
    Recipe,
    RecipeStep,
    follow,
)
from payment_sandbox.orders.actions import CUSTOMER
from payment_sandbox.orders.order import Order
from payment_sandbox.orders.refusals import Unknown
from payment_sandbox.projects.journal import MERCHANT
from payment_sandbox.projects.project import Project


class OutcomeSteps(NamedTuple):
    """The steps to an outcome of a payment."""

    steps: tuple[RecipeStep | None, ...]
    is_captured_by_hand: bool = False


PAYMENT: Final = None  # a placeholder for the payment step of the method
REFUNDS: Final = RecipeStep(MERCHANT, "refund")
VOIDS: Final = RecipeStep(MERCHANT, "void")
PAID_STEPS: Final = {PAYMENT, CREDITS, CREDITS._replace(is_part=True)}
SHORT: Final = "PT1M"
PLAYED: Final[Mapping[str, OutcomeSteps]] = {
    PAID: OutcomeSteps((PAYMENT,)),
    DECLINED: OutcomeSteps((RecipeStep(CUSTOMER, "fail", reason="Do not honour"),)),
    CANCELLED: OutcomeSteps((RecipeStep(CUSTOMER, "cancel"),)),
    EXPIRED: OutcomeSteps((EXPIRES,)),
    PAID_IN_PART: OutcomeSteps((CREDITS._replace(is_part=True),)),
    PAID_LATE: OutcomeSteps((EXPIRES, CREDITS)),
    AUTHORIZED: OutcomeSteps((PAYMENT,), True),
    CAPTURED: OutcomeSteps((PAYMENT, CAPTURES), True),
    CAPTURED_IN_PART: OutcomeSteps((PAYMENT, CAPTURES._replace(is_part=True)), True),
    VOIDED: OutcomeSteps((PAYMENT, VOIDS), True),
    REFUNDED: OutcomeSteps((PAYMENT, REFUNDS)),
    REFUNDED_IN_PART: OutcomeSteps((PAYMENT, REFUNDS._replace(is_part=True))),
}


def playable_outcomes(project: Project, method: str) -> list[str]:
    """List the playable outcomes of payments with a method in the project's mode."""
    is_live = project.settings.mode == LIVE
    if not is_live and not BY_NAME[method].capabilities.testable:
        return []
    impossible = set(_unplayable(method, is_live=is_live))
    return [
        outcome for outcome in possible_outcomes(method) if outcome in PLAYED and outcome not in impossible
    ]


def _unplayable(method: str, *, is_live: bool) -> Iterator[str]:
    """Yield the outcomes of a method that cannot be played."""
    capabilities = BY_NAME[method].capabilities
    if not _payment(method):
        yield EXPIRED  # the payment is authorized at once
    if capabilities.refunds_by_lines:
        yield from (REFUNDED, REFUNDED_IN_PART)
    if not is_live and not capabilities.completes_in_test:
        yield from (outcome for outcome, played in PLAYED.items() if not PAID_STEPS.isdisjoint(played.steps))


def play_outcome(project: Project, method: str, outcome: str, create: Callable[[Json], Order]) -> Order:
    """Create an order, and bring its payment with this method to this outcome.

    Raises:
        Unknown: the outcome is unknown, or cannot be played in the project's mode.
    """
    if method not in BY_NAME or outcome not in playable_outcomes(project, method):
        raise Unknown(f"the case {method} {outcome} cannot be played in the project's mode")
    played = PLAYED[outcome]
    steps = [each for step in played.steps for each in (_payment(method) if step is PAYMENT else (step,))]
    if (
        outcome in (REFUNDED, REFUNDED_IN_PART)
        and BY_NAME[method].capabilities.default_capture_mode is not None
    ):
        steps.insert(-1, CAPTURES)
    recipe = Recipe(outcome, _order(method, played), tuple(steps))
    return follow(project, recipe, create(recipe.creation(f"{method}: {outcome}")))


def _payment(method: str) -> tuple[RecipeStep, ...]:
    """Return the payment step: a bank's credit or a customer's payment; some methods need neither."""
    decided = frozenset().union(*BY_NAME[method].capabilities.outcomes)
    if "credit" in decided:
        return (CREDITS,)
    return (PAYS,) if CUSTOMER in decided else ()


def _order(method: str, outcome: OutcomeSteps) -> Json:
    capabilities = BY_NAME[method].capabilities
    attempt: Json = {"payment_method": method}
    if capabilities.has_issuers:
        attempt["payment_method_details"] = {"issuer_id": ISSUERS[0].id}
    if EXPIRES in outcome.steps:
        attempt["expiration_period"] = SHORT
    if capabilities.authorizes and outcome.is_captured_by_hand:
        attempt |= {"capture_mode": "manual", "expiration_period": "P7D"}
    customer = {**NOOR, "email_address": "noor@shop.example"}
    return {"transactions": [attempt], "customer": customer, "order_lines": list(LINES)}
