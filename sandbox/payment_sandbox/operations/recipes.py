"""Recipes for test orders in all states relevant to a shop."""

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from payment_sandbox.operations.act import act
from payment_sandbox.operations.advance import advance_clock
from payment_sandbox.operations.agenda import entries_of
from payment_sandbox.operations.by_hand import act_as_merchant
from payment_sandbox.orders.actions import BANK, CUSTOMER, Action
from payment_sandbox.orders.amounts import Cents
from payment_sandbox.orders.order import Order
from payment_sandbox.orders.refusals import Invalid, Violation
from payment_sandbox.projects.journal import MERCHANT_ACTOR
from payment_sandbox.projects.project import Project
from payment_sandbox.projects.settings import LIVE_MODE

CLOCK_ACTOR: Final = "clock"
EXPIRIES: Final = ("expiry", "page-expiry")  # of unpaid orders
SAMPLE_CUSTOMER: Final = {
    "first_name": "Noor",
    "last_name": "Visser",
    "address": "Kade 1, 1011 AB Amsterdam",
    "country": "NL",
    "locale": "nl",
}
SAMPLE_LINES: Final = (
    {
        "merchant_order_line_id": "line-1",
        "name": "Socks",
        "amount": 1000,
        "quantity": 1,
        "vat_percentage": 2100,
    },
    {
        "merchant_order_line_id": "line-2",
        "name": "Postage",
        "amount": 295,
        "quantity": 1,
        "vat_percentage": 2100,
    },
)

Json = dict[str, Any]


class RecipeStep(NamedTuple):
    """A step by an actor; the clock's step is an expiry."""

    actor: str
    action: str
    is_part: bool = False  # for half of the amount
    reason: str | None = None


class Recipe(NamedTuple):
    """A recipe for a state of an order: the initial order, and the steps to the state."""

    about: str
    order: Mapping[str, Any]
    steps: tuple[RecipeStep, ...] = ()
    mode: str | None = None  # required mode; None: any

    def creation(self, name: str, /, **fields: Any) -> Json:
        """Build the body of the create call."""
        return {"currency": "EUR", "amount": 1295, "description": f"trigger {name}", **self.order, **fields}


def half_of(amount_cents: Cents) -> Cents:
    """Return the amount of a partial step."""
    return max(1, amount_cents // 2)


def _with_method(payment_method: str, **more: Any) -> Json:
    return {"transactions": [{"payment_method": payment_method, **more}]}


def _pay_later_order(email: str) -> Json:
    customer = {**SAMPLE_CUSTOMER, "email_address": f"{email}@shop.example"}
    return {**_with_method("pay-later-a"), "customer": customer, "order_lines": list(SAMPLE_LINES)}


CARD_ORDER: Final = _with_method("credit-card")
MANUAL_ORDER: Final = _with_method("credit-card", capture_mode="manual", expiration_period="P7D")
PAY_STEP: Final = RecipeStep(CUSTOMER, "pay")
CREDIT_STEP: Final = RecipeStep(BANK, "credit")
EXPIRY_STEP: Final = RecipeStep(CLOCK_ACTOR, "expire")
CAPTURE_STEP: Final = RecipeStep(MERCHANT_ACTOR, "capture")
RECIPES: Final[Mapping[str, Recipe]] = {
    "hosted": Recipe("an order with a hosted page, where the customer chooses the method", {}),
    "new": Recipe("an unpaid card order", CARD_ORDER),
    "paid": Recipe("a paid order", CARD_ORDER, (PAY_STEP,)),
    "authorized": Recipe(
        "a card payment to be captured by hand within seven days", MANUAL_ORDER, (PAY_STEP,)
    ),
    "captured": Recipe(
        "an authorized card payment that was captured", MANUAL_ORDER, (PAY_STEP, CAPTURE_STEP)
    ),
    "declined": Recipe(
        "a card declined by the bank", CARD_ORDER, (RecipeStep(CUSTOMER, "fail", reason="Do not honour"),)
    ),
    "cancelled": Recipe("a customer who cancels", CARD_ORDER, (RecipeStep(CUSTOMER, "cancel"),)),
    "withdrawn": Recipe(
        "an order cancelled by the shop", CARD_ORDER, (RecipeStep(MERCHANT_ACTOR, "cancel"),)
    ),
    "expired": Recipe(
        "an order that expires unpaid; moves the clock by a minute",
        _with_method("credit-card", expiration_period="PT1M"),
        (EXPIRY_STEP,),
    ),
    "refund": Recipe(
        "a paid order that is refunded", CARD_ORDER, (PAY_STEP, RecipeStep(MERCHANT_ACTOR, "refund"))
    ),
    "refund-part": Recipe(
        "a paid order, half of it refunded",
        CARD_ORDER,
        (PAY_STEP, RecipeStep(MERCHANT_ACTOR, "refund", is_part=True)),
    ),
    "transfer": Recipe(
        "a bank transfer that arrives", _with_method("bank-transfer"), (CREDIT_STEP,), LIVE_MODE
    ),
    "transfer-part": Recipe(
        "a bank transfer of half the amount",
        _with_method("bank-transfer"),
        (CREDIT_STEP._replace(is_part=True),),
        LIVE_MODE,
    ),
    "transfer-late": Recipe(
        "a bank transfer that arrives after the order has expired; moves the clock by a minute",
        _with_method("bank-transfer", expiration_period="PT1M"),
        (EXPIRY_STEP, CREDIT_STEP),
        LIVE_MODE,
    ),
    "screening-declined": Recipe("a customer declined by the screening", _pay_later_order("declined")),
    "screening-slow": Recipe("a customer whose screening takes time", _pay_later_order("needs-time")),
}


def playable_recipes(mode: str) -> dict[str, Recipe]:
    """Return the recipes supported by a mode, by name."""
    return {name: recipe for name, recipe in RECIPES.items() if recipe.mode in (None, mode)}


def play(project: Project, name: str, create: Callable[[Json], Order]) -> Order:
    """Create an order in this state; the merchant's steps are manual actions.

    Raises:
        Invalid: the recipe is unknown in the project's mode.
    """
    possible = playable_recipes(project.settings.mode)
    if name not in possible:
        raise Invalid([Violation("recipe", f"must be one of: {', '.join(possible)}", list(possible))])
    recipe = possible[name]
    order = create(recipe.creation(name))
    for step in recipe.steps:
        _perform(project, order, step)
    return project.find_order(order.id)


def _perform(project: Project, order: Order, step: RecipeStep) -> None:
    amount_cents = half_of(order.amount_cents) if step.is_part else None
    if step.actor == CLOCK_ACTOR:
        _expire(project, order)
    elif step.actor == MERCHANT_ACTOR:
        whole_cents = order.amount_cents if step.action in ("capture", "void") else None
        act_as_merchant(project, order.id, step.action, amount_cents or whole_cents)
    else:
        act(project, order.id, Action(step.actor, step.action, step.reason, amount_cents=amount_cents))


def _expire(project: Project, order: Order) -> None:
    """Advance the clock exactly to the last expiry of an unpaid order."""
    ends = [due.at for due in entries_of(project.epoch, order) if due.item.kind in EXPIRIES]
    if ends:
        advance_clock(project, {"to": max(ends)})
