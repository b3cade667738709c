"""The steps of a rehearsed test, and what a row of the table needs to know about them."""

from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple

from payment_sandbox.orders.actions import Action

CREATE: Final = "create"  # calls by the shop
READ: Final = "read"
CHANGE: Final = "change"
WEBHOOK: Final = "webhook"
ACTION: Final = "action"  # by a customer or a bank
ATTEMPT: Final = "attempt"  # the service's decision on a payment or a refund
PRESS: Final = "press"  # a form that the test submits to the shop
TIME: Final = "time"  # an advance of the clock by the test
CREATION_PATHS: Final = ("/v1/orders", "/v1/bankqr")
ORDER_ID_INDEX: Final = 3  # the position of the order's id in a split path such as /v1/orders/<id>/captures/
UNCHANGED: Final = "unchanged"

SAME: Final = "same"  # the money must end as in the unchanged run
ONCE: Final = "once"  # no more money may move than in the unchanged run
PAID: Final = "paid"  # if the money ends as in the unchanged run, the customer's pages do, too
ANY: Final = "any"


class ActionDetails(NamedTuple):
    """An action on an order, and the state before it."""

    action: Action
    is_hosted: bool
    has_return: bool  # the customer returns to a page of the shop
    has_earlier: bool  # earlier orders can still be paid
    has_authorization: bool


class Step(NamedTuple):
    """A step of a test: its kind, its number within the kind, a label, and details."""

    kind: str
    number: int
    label: str
    about: Any

    @property
    def name(self) -> str:
        """The name in rehearsals, such as ``webhook:2``."""
        return f"{self.kind}:{self.number}"


class Variation(NamedTuple):
    """A row of the table: what goes otherwise at a step, and what the shop may make of it.

    ``sentence`` describes it, ``risk`` is its cost for an unprepared shop. An act that needs something of the
    step says so in ``applies``; ``needs_restart`` needs the test's fixture. ``money`` says how the money must
    end, and ``holds`` that the test's own assertions must hold. ``excused`` are rules of the review that a
    right shop may break here.
    """

    kinds: tuple[str, ...]
    name: str
    sentence: str
    risk: str
    effect: Any
    money: str = ANY
    applies: Callable[[Any], bool] = lambda about: True
    holds: bool = False
    excused: frozenset[str] = frozenset()
    needs_restart: bool = False


class Change(NamedTuple):
    """A variation at one step, such as ``webhook:2:twice``."""

    step: str
    row: Variation

    @property
    def name(self) -> str:
        """The change in the form that users type."""
        return f"{self.step}:{self.row.name}"


def plan(steps: Iterable[Step], rows: Iterable[Variation], *, can_restart: bool) -> list[Change]:
    """Plan each row at the first and the last step of each label, in the order of the table."""
    steps = list(steps)
    changes = []
    for row in rows:
        if row.needs_restart and not can_restart:
            continue
        places: dict[str, list[Step]] = {}
        for step in steps:
            if step.kind in row.kinds and row.applies(step.about):
                places.setdefault(step.label, []).append(step)
        for same in places.values():
            changes += [Change(name, row) for name in dict.fromkeys((same[0].name, same[-1].name))]
    return changes


def kind_of_call(method: str, path: str) -> str:
    """Return the kind of a call by the shop: create, read or change."""
    if method == "GET":
        return READ
    return CREATE if method == "POST" and path.rstrip("/") in CREATION_PATHS else CHANGE
