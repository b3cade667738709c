"""Actions that replace those of a rehearsed test, or that precede a call of the shop."""

from collections.abc import Callable, Container, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final, NamedTuple

from payment_sandbox.kernel.times import Period
from payment_sandbox.operations.act import act
from payment_sandbox.operations.advance import advance, run_due
from payment_sandbox.operations.by_hand import act_as_merchant
from payment_sandbox.operations.update import update
from payment_sandbox.orders.actions import CUSTOMER, Action
from payment_sandbox.orders.order import Order
from payment_sandbox.orders.refusals import Refusal
from payment_sandbox.projects.calling import caller
from payment_sandbox.projects.rehearsal import Do
from payment_sandbox.scenarios import variations
from payment_sandbox.scenarios.variation import PriorEvent, ReplacementScene, TimePasses

if TYPE_CHECKING:
    from payment_sandbox.projects.project import Project

SETTLE_SECONDS: Final = 10.0
SURPLUS_CENTS: Final = 100
MOMENT: Final = Period.parse("PT1S")
LAST_MOMENT: Final = timedelta(seconds=1)
CHANGED: Final = "Changed by hand"
ORDER_PART: Final = 3  # the position of the id in the split path /v1/orders/<id>/…


class Scene(NamedTuple):
    """The state before an action on an order."""

    project: "Project"
    order_id: str
    action: Action
    do: Do
    visit: Callable[[Order, int], None] | None
    restart: Callable[[], None] | None
    others: Sequence[Order]  # earlier ones that the shop knows, and that are still open

    @property
    def order(self) -> Order:
        """The current order."""
        return self.project.find_order(self.order_id)

    def acts(self, action: Action | None = None) -> Order:
        """Perform the action, if the state of the order allows it."""
        with suppress(Refusal):
            return self.do(action or self.action)
        return self.order

    def acts_after(self, action: str) -> Order:
        """Perform another action, choose the same method again, and then perform the action."""
        attempt = self.acts(Action(CUSTOMER, action)).last_transaction
        if attempt is not None:
            again = Action(CUSTOMER, "choose", payment_method=attempt.payment_method)
            with suppress(Refusal):
                act(self.project, self.order_id, again)
        return self.acts()

    def sends(self, more_cents: int) -> Order:
        """Send another amount, if it is positive."""
        cents = (self.action.amount_cents or self.order.amount_cents) + more_cents
        return self.acts(self.action._replace(amount_cents=cents)) if cents > 0 else self.order

    def passes(self, until: datetime) -> None:
        """Advance the clock: run the due events and deliver their webhooks."""
        caller().begin_waiting()
        _let_webhooks_go(self.project)
        with suppress(Refusal):
            advance(self.project, lambda now: max(now, until))

    def returns(self, tabs: int) -> Order:
        """Return to the shop in some tabs."""
        if self.visit is not None:
            self.visit(self.order, tabs)
        return self.order

    def acts_and_returns(self, tabs: int) -> Order:
        """Act, and return to the shop before the webhook, which waits for the end of this call."""
        order = self.acts()
        self.returns(tabs)
        return order


def _let_webhooks_go(project: "Project") -> None:
    """Release the webhooks before the end of this request: an advance waits for them."""
    held = caller().held
    if held is not None:
        project.release(held)


def _expiries(order: Order) -> list[datetime]:
    """Return the expiry times of an order's page and newest attempt."""
    attempt = order.last_transaction
    ends = [order.expires_at, attempt.expires_at if attempt is not None else None]
    return [end for end in ends if end is not None]


def after_expiry(scene: Scene) -> Order:
    """Perform the action after the expiry."""
    ends = _expiries(scene.order)
    if ends:
        scene.passes(MOMENT.after(max(ends)))
    return scene.acts()


def at_last_moment(scene: Scene) -> Order:
    """Perform the action a second before the expiry."""
    ends = _expiries(scene.order)
    if ends:
        scene.passes(min(ends) - LAST_MOMENT)
    return scene.acts()


def after_earlier(scene: Scene) -> Order:
    """Perform the action after the expiry of an earlier order, if this order is still valid."""
    ends = [end for other in scene.others for end in _expiries(other)]
    if ends and min(ends) < min(_expiries(scene.order), default=min(ends)):
        scene.passes(MOMENT.after(min(ends)))
    return scene.acts()


def twice(scene: Scene) -> Order:
    """Perform the action twice."""
    scene.acts()
    return scene.acts()


def others(project: "Project", order: Order, known: Container[str]) -> list[Order]:
    """Return the earlier open orders, except those whose response was lost: the customer has no page."""
    orders = [each for each in project.epoch.store.orders_newest_first() if each.id != order.id]
    return [each for each in orders if each.is_open and not each.is_refund and each.id in known]


def on_earlier(scene: Scene, action: str) -> Order:
    """Pay or cancel on the pages of earlier orders."""
    for other in scene.others:
        with suppress(Refusal):
            act(scene.project, other.id, Action(CUSTOMER, action))
    return scene.order


def acts_and(scene: Scene, action: str) -> Order:
    """Perform the action, and also pay or cancel on the pages of earlier orders."""
    scene.acts()
    return on_earlier(scene, action)


def earlier_first(scene: Scene) -> Order:
    """Pay on the pages of earlier orders, then perform the action."""
    on_earlier(scene, "pay")
    return scene.acts()


def lapses(scene: Scene) -> Order:
    """Perform the action, and let the authorization expire."""
    attempt = scene.acts().last_transaction
    if attempt is not None and attempt.authorization is not None:
        scene.passes(MOMENT.after(attempt.authorization.expires_at))
    return scene.order


def restarted(scene: Scene) -> Order:
    """Perform the action, and restart the shop."""
    order = scene.acts()
    _let_webhooks_go(scene.project)
    scene.project.settle(SETTLE_SECONDS)
    if scene.restart is not None:
        scene.restart()
    return order


SCENES: Final[Mapping[ReplacementScene, Callable[[Scene], Order]]] = {
    variations.RETURNS_FIRST: lambda scene: scene.acts_and_returns(1),
    variations.TWO_TABS: lambda scene: scene.acts_and_returns(2),
    variations.RETURNS_UNPAID: lambda scene: scene.returns(1),
    variations.FAILS_THEN_PAYS: lambda scene: scene.acts_after("fail"),
    variations.CANCELS_THEN_PAYS: lambda scene: scene.acts_after("cancel"),
    variations.WALKS_AWAY: lambda scene: scene.order,
    variations.ACTS_TOO_LATE: after_expiry,
    variations.ACTS_TWICE: twice,
    variations.PAYS_BOTH: lambda scene: acts_and(scene, "pay"),
    variations.PAYS_EARLIER: lambda scene: on_earlier(scene, "pay"),
    variations.PAYS_EARLIER_FIRST: earlier_first,
    variations.CANCELS_EARLIER: lambda scene: acts_and(scene, "cancel"),
    variations.AFTER_EARLIER: after_earlier,
    variations.ACTS_LAST_MOMENT: at_last_moment,
    variations.SENDS_LESS: lambda scene: scene.sends(-1),
    variations.SENDS_MORE: lambda scene: scene.sends(SURPLUS_CENTS),
    variations.LAPSES: lapses,
    variations.RESTARTS: restarted,
}


def played(effect: Action | TimePasses | ReplacementScene, scene: Scene) -> Order:
    """Perform a replacement of the action; return the order."""
    if isinstance(effect, Action):
        return scene.acts(effect)
    if isinstance(effect, ReplacementScene):
        return SCENES[effect](scene)
    scene.acts()
    scene.passes(Period.parse(effect.period).after(scene.project.now()))
    return scene.order


def _expire(project: "Project", order: Order) -> None:
    """Expire the authorization during a call; the webhooks and jobs run after the call."""
    attempt = order.last_transaction
    if attempt is None or attempt.authorization is None or project.epoch.is_advancing:
        return
    epoch, ends = project.epoch, MOMENT.after(attempt.authorization.expires_at)
    with project.exclusively(epoch):
        epoch.timeline.move_to(max(epoch.now(), ends))
    with project.edit(epoch, epoch.timeline.now) as edit:
        edit.state = edit.state._replace(clock=edit.state.clock.set(edit.now))
    run_due(project)


def _by_hand(project: "Project", order: Order, action: str) -> None:
    """Capture or void the rest of the authorization, as the merchant in the back office."""
    attempt = order.last_transaction
    if attempt is not None and attempt.authorization is not None:
        act_as_merchant(project, order.id, action, attempt.authorization.remaining_cents)


HAPPENINGS: Final[Mapping[PriorEvent, Callable[["Project", Order], object]]] = {
    variations.CAPTURED_BY_HAND: lambda project, order: _by_hand(project, order, "capture"),
    variations.VOIDED_BY_HAND: lambda project, order: _by_hand(project, order, "void"),
    variations.EXPIRED: _expire,
    variations.CHANGED: lambda project, order: update(project, order.id, {"description": CHANGED}, [], None),
}


def happen(effect: PriorEvent, project: "Project", path: str) -> None:
    """Apply an event to the order of a call before the answer, if the order's state allows it."""
    with suppress(Refusal, IndexError):
        HAPPENINGS[effect](project, project.find_order(path.split("/")[ORDER_PART]))
