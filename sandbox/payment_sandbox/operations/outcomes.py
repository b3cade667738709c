"""Recipes for the outcomes of payments: an order, and the steps to the outcome."""

from collections.abc import Callable, Iterator, Mapping
from typing import Final, NamedTuple

from payment_sandbox.methods import METHODS_BY_NAME
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
    CAPTURE_STEP,
    CREDIT_STEP,
    EXPIRY_STEP,
    LIVE_MODE,
    PAY_STEP,
    SAMPLE_CUSTOMER,
    SAMPLE_LINES,
    Json,
    Recipe,
    RecipeStep,
    follow,
)
from payment_sandbox.orders.actions import CUSTOMER
from payment_sandbox.orders.order import Order
from payment_sandbox.orders.refusals import Unknown
from payment_sandbox.projects.journal import MERCHANT_ACTOR
from payment_sandbox.projects.project import Project


class OutcomeSteps(NamedTuple):
    """The steps to an outcome of a payment."""

    steps: tuple[RecipeStep | None, ...]
    is_captured_by_hand: bool = False


PAYMENT_PLACEHOLDER: Final = None  # a placeholder for the payment step of the method
REFUND_STEP: Final = RecipeStep(MERCHANT_ACTOR, "refund")
VOID_STEP: Final = RecipeStep(MERCHANT_ACTOR, "void")
PAID_STEPS: Final = {PAYMENT_PLACEHOLDER, CREDIT_STEP, CREDIT_STEP._replace(is_part=True)}
SHORT_PERIOD: Final = "PT1M"
STEPS_BY_OUTCOME: Final[Mapping[str, OutcomeSteps]] = {
    PAID: OutcomeSteps((PAYMENT_PLACEHOLDER,)),
    DECLINED: OutcomeSteps((RecipeStep(CUSTOMER, "fail", reason="Do not honour"),)),
    CANCELLED: OutcomeSteps((RecipeStep(CUSTOMER, "cancel"),)),
    EXPIRED: OutcomeSteps((EXPIRY_STEP,)),
    PAID_IN_PART: OutcomeSteps((CREDIT_STEP._replace(is_part=True),)),
    PAID_LATE: OutcomeSteps((EXPIRY_STEP, CREDIT_STEP)),
    AUTHORIZED: OutcomeSteps((PAYMENT_PLACEHOLDER,), True),
    CAPTURED: OutcomeSteps((PAYMENT_PLACEHOLDER, CAPTURE_STEP), True),
    CAPTURED_IN_PART: OutcomeSteps((PAYMENT_PLACEHOLDER, CAPTURE_STEP._replace(is_part=True)), True),
    VOIDED: OutcomeSteps((PAYMENT_PLACEHOLDER, VOID_STEP), True),
    REFUNDED: OutcomeSteps((PAYMENT_PLACEHOLDER, REFUND_STEP)),
    REFUNDED_IN_PART: OutcomeSteps((PAYMENT_PLACEHOLDER, REFUND_STEP._replace(is_part=True))),
}


def playable_outcomes(project: Project, method: str) -> list[str]:
    """List the playable outcomes of payments with a method in the project's mode."""
    is_live = project.settings.mode == LIVE_MODE
    if not is_live and not METHODS_BY_NAME[method].capabilities.testable:
        return []
    impossible = set(_impossible_outcomes(method, is_live=is_live))
    return [
        outcome
        for outcome in possible_outcomes(method)
        if outcome in STEPS_BY_OUTCOME and outcome not in impossible
    ]


def _impossible_outcomes(method: str, *, is_live: bool) -> Iterator[str]:
    """Yield the outcomes of a method that cannot be played."""
    capabilities = METHODS_BY_NAME[method].capabilities
    if not _payment_steps(method):
        yield EXPIRED  # the payment is authorized immediately
    if capabilities.refunds_by_lines:
        yield from (REFUNDED, REFUNDED_IN_PART)
    if not is_live and not capabilities.completes_in_test:
        yield from (
            outcome for outcome, played in STEPS_BY_OUTCOME.items() if not PAID_STEPS.isdisjoint(played.steps)
        )


def play_outcome(project: Project, method: str, outcome: str, create: Callable[[Json], Order]) -> Order:
    """Create an order, and bring its payment with this method to this outcome.

    Raises:
        Unknown: the outcome is unknown, or cannot be played in the project's mode.
    """
    if method not in METHODS_BY_NAME or outcome not in playable_outcomes(project, method):
        raise Unknown(f"the case {method} {outcome} cannot be played in the project's mode")
    played = STEPS_BY_OUTCOME[outcome]
    steps = [
        each
        for step in played.steps
        for each in (_payment_steps(method) if step is PAYMENT_PLACEHOLDER else (step,))
    ]
    if (
        outcome in (REFUNDED, REFUNDED_IN_PART)
        and METHODS_BY_NAME[method].capabilities.default_capture_mode is not None
    ):
        steps.insert(-1, CAPTURE_STEP)
    recipe = Recipe(outcome, _build_order(method, played), tuple(steps))
    return follow(project, recipe, create(recipe.creation(f"{method}: {outcome}")))


def _payment_steps(method: str) -> tuple[RecipeStep, ...]:
    """Return the payment step: a bank's credit or a customer's payment; some methods need neither."""
    decided = frozenset().union(*METHODS_BY_NAME[method].capabilities.outcomes)
    if "credit" in decided:
        return (CREDIT_STEP,)
    return (PAY_STEP,) if CUSTOMER in decided else ()


def _build_order(method: str, outcome: OutcomeSteps) -> Json:
    capabilities = METHODS_BY_NAME[method].capabilities
    attempt: Json = {"payment_method": method}
    if capabilities.has_issuers:
        attempt["payment_method_details"] = {"issuer_id": ISSUERS[0].id}
    if EXPIRY_STEP in outcome.steps:
        attempt["expiration_period"] = SHORT_PERIOD
    if capabilities.authorizes and outcome.is_captured_by_hand:
        attempt |= {"capture_mode": "manual", "expiration_period": "P7D"}
    customer = {**SAMPLE_CUSTOMER, "email_address": "noor@shop.example"}
    return {"transactions": [attempt], "customer": customer, "order_lines": list(SAMPLE_LINES)}
