"""Performs replacements for the actions of a rehearsed test, and events before a call by the shop."""

from collections.abc import Callable, Container, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final, NamedTuple

from payment_sandbox.kernel.times import Period
from payment_sandbox.methods import METHODS_BY_NAME
from payment_sandbox.operations.act import act
from payment_sandbox.operations.advance import advance, run_due
from payment_sandbox.operations.attempts import offered_methods
from payment_sandbox.operations.by_hand import act_as_merchant
from payment_sandbox.operations.update import update
from payment_sandbox.orders.actions import BANK, CUSTOMER, Action
from payment_sandbox.orders.order import Order
from payment_sandbox.orders.refusals import Refusal
from payment_sandbox.projects.caller import caller
from payment_sandbox.projects.rehearsal_hooks import Do
from payment_sandbox.scenarios import variation_catalogue as variations
from payment_sandbox.scenarios.variation import ElapsedTime, PriorEvent, ReplacementScene
from pytest_payment_sandbox.rehearsal.changes import order_id_of

if TYPE_CHECKING:
    from payment_sandbox.projects.project import Project

SETTLE_SECONDS: Final = 10.0
OVERPAYMENT_CENTS: Final = 100
ONE_SECOND_PERIOD: Final = Period.parse("PT1S")
ONE_SECOND: Final = timedelta(seconds=1)
CHANGED_DESCRIPTION: Final = "Changed by hand"


class Scene(NamedTuple):
    """The state before an action on an order."""

    project: "Project"
    order_id: str
    action: Action
    do: Do
    visit: Callable[[Order, int], None] | None
    restart: Callable[[], None] | None
    earlier_open_orders: Sequence[Order]  # earlier, still open orders that the shop knows

    @property
    def order(self) -> Order:
        """The current order."""
        return self.project.find_order(self.order_id)

    def perform(self, action: Action | None = None) -> Order:
        """Perform the given action, or else the scene's own, if the order's state allows it."""
        with suppress(Refusal):
            return self.do(action or self.action)
        return self.order

    def perform_after(self, action: str) -> Order:
        """Perform another action, choose the same method once more, and then perform the scene's action."""
        attempt = self.perform(Action(CUSTOMER, action)).last_transaction
        if attempt is not None:
            self.choose(attempt.payment_method)
        return self.perform()

    def choose(self, payment_method: str) -> None:
        """Choose a method on the hosted page, if the order's state allows it."""
        with suppress(Refusal):
            act(self.project, self.order_id, Action(CUSTOMER, "choose", payment_method=payment_method))

    def send(self, more_cents: int) -> Order:
        """Send the amount plus ``more_cents``, if the sum is positive."""
        cents = (self.action.amount_cents or self.order.amount_cents) + more_cents
        return self.perform(self.action._replace(amount_cents=cents)) if cents > 0 else self.order

    def advance_to(self, until: datetime) -> None:
        """Advance the clock: run the due events, and deliver their webhooks."""
        _advance_to(self.project, until)

    def return_to_shop(self, tabs: int) -> Order:
        """Return to the shop, in the given number of tabs."""
        if self.visit is not None:
            self.visit(self.order, tabs)
        return self.order

    def perform_and_return(self, tabs: int) -> Order:
        """Perform the action, and return to the shop before the webhook, which waits for this call."""
        order = self.perform()
        self.return_to_shop(tabs)
        return order


def _advance_to(project: "Project", until: datetime) -> None:
    _release_webhooks(project)
    with suppress(Refusal):
        advance(project, lambda now: max(now, until))


def _release_webhooks(project: "Project") -> None:
    """Release the webhooks before this request ends, because advancing the clock waits for webhooks."""
    held = caller().held
    if held is not None:
        project.release(held)


def _expiries(order: Order) -> list[datetime]:
    """Return the expiry times of an order's page and newest attempt."""
    attempt = order.last_transaction
    expiries = [order.expires_at, attempt.expires_at if attempt is not None else None]
    return [end for end in expiries if end is not None]


def perform_after_expiry(scene: Scene) -> Order:
    """Perform the action after the order's expiry."""
    expiries = _expiries(scene.order)
    if expiries:
        scene.advance_to(ONE_SECOND_PERIOD.after(max(expiries)))
    return scene.perform()


def perform_at_last_moment(scene: Scene) -> Order:
    """Perform the action a second before the order's expiry."""
    expiries = _expiries(scene.order)
    if expiries:
        scene.advance_to(min(expiries) - ONE_SECOND)
    return scene.perform()


def open_page(scene: Scene) -> Order:
    """Open the payment page, which changes the order's status, and return to the shop."""
    scene.perform(Action(CUSTOMER, "visit"))
    return scene.return_to_shop(1)


def perform_late_on_page(scene: Scene) -> Order:
    """Open the payment page, and perform the action a second before the order's expiry."""
    scene.perform(Action(CUSTOMER, "visit"))
    return perform_at_last_moment(scene)


def perform_after_earlier_expiry(scene: Scene) -> Order:
    """Perform the action once an earlier order has expired, if the current order is still valid."""
    expiries = [end for other in scene.earlier_open_orders for end in _expiries(other)]
    if expiries and min(expiries) < min(_expiries(scene.order), default=min(expiries)):
        scene.advance_to(ONE_SECOND_PERIOD.after(min(expiries)))
    return scene.perform()


def perform_twice(scene: Scene) -> Order:
    """Perform the action twice."""
    scene.perform()
    return scene.perform()


def earlier_open_orders(project: "Project", order: Order, known: Container[str]) -> list[Order]:
    """Return earlier open orders, except orders whose response was lost: they have no page."""
    orders = [each for each in project.epoch.store.orders_newest_first() if each.id != order.id]
    return [each for each in orders if each.is_open and not each.is_refund and each.id in known]


def act_on_earlier_attempt(scene: Scene, action: str) -> Order:
    """Pay or cancel on the pages of earlier orders."""
    for other in scene.earlier_open_orders:
        with suppress(Refusal):
            act(scene.project, other.id, Action(CUSTOMER, action))
    return scene.order


def perform_and_act_on_earlier_attempt(scene: Scene, action: str) -> Order:
    """Perform the action, then pay or cancel on the pages of earlier orders."""
    scene.perform()
    return act_on_earlier_attempt(scene, action)


def perform_after_paying_earlier_attempt(scene: Scene) -> Order:
    """Pay on the pages of earlier orders, then perform the action."""
    act_on_earlier_attempt(scene, "pay")
    return scene.perform()


def offered_transfer(project: "Project", order: Order) -> str | None:
    """Return the method for a transfer on the hosted page of an order, if its money can arrive."""
    settings = project.settings
    names = offered_methods(settings, order) if order.is_hosted and not settings.is_test else []
    kinds = {name: METHODS_BY_NAME[settings.method(name) or ""].capabilities.page for name in names}
    return next((name for name, kind in kinds.items() if kind == "transfer"), None)


def pay_by_transfer_too(scene: Scene) -> Order:
    """Choose a transfer, then perform the action with the method chosen before; the transfer arrives, too."""
    transfer, attempt = offered_transfer(scene.project, scene.order), scene.order.last_transaction
    if transfer is None or attempt is None:
        return scene.perform()
    for method in (transfer, attempt.payment_method):
        scene.choose(method)
    for action in (scene.action, Action(BANK, "credit")):
        with suppress(Refusal):  # another attempt than the one whose page is open
            act(scene.project, scene.order_id, action)
        deliver_webhooks(scene.project)
    return scene.order


def let_authorization_expire(scene: Scene) -> Order:
    """Perform the action, and let the authorization expire."""
    attempt = scene.perform().last_transaction
    if attempt is not None and attempt.authorization is not None:
        scene.advance_to(ONE_SECOND_PERIOD.after(attempt.authorization.expires_at))
    return scene.order


def restart_shop(scene: Scene) -> Order:
    """Perform the action, and restart the shop."""
    order = scene.perform()
    _restart_and_settle(scene.project, scene.restart)
    return order


def deliver_webhooks(project: "Project") -> None:
    """Deliver the due webhooks, and wait for their answers."""
    _release_webhooks(project)
    project.settle(SETTLE_SECONDS)


def _restart_and_settle(project: "Project", restart: Callable[[], None] | None) -> None:
    deliver_webhooks(project)
    if restart is not None:
        restart()


SCENE_PLAYERS: Final[Mapping[ReplacementScene, Callable[[Scene], Order]]] = {
    variations.RETURNS_FIRST: lambda scene: scene.perform_and_return(1),
    variations.TWO_TABS: lambda scene: scene.perform_and_return(2),
    variations.RETURNS_UNPAID: lambda scene: scene.return_to_shop(1),
    variations.OPENS_PAGE: open_page,
    variations.FAILS_THEN_PAYS: lambda scene: scene.perform_after("fail"),
    variations.CANCELS_THEN_PAYS: lambda scene: scene.perform_after("cancel"),
    variations.WALKS_AWAY: lambda scene: scene.order,
    variations.ACTS_TOO_LATE: perform_after_expiry,
    variations.ACTS_TWICE: perform_twice,
    variations.PAYS_BOTH: lambda scene: perform_and_act_on_earlier_attempt(scene, "pay"),
    variations.PAYS_EARLIER: lambda scene: act_on_earlier_attempt(scene, "pay"),
    variations.PAYS_EARLIER_FIRST: perform_after_paying_earlier_attempt,
    variations.CANCELS_EARLIER: lambda scene: perform_and_act_on_earlier_attempt(scene, "cancel"),
    variations.AFTER_EARLIER_EXPIRY: perform_after_earlier_expiry,
    variations.ACTS_LAST_MOMENT: perform_at_last_moment,
    variations.LATE_ON_PAGE: perform_late_on_page,
    variations.SENDS_LESS: lambda scene: scene.send(-1),
    variations.SENDS_MORE: lambda scene: scene.send(OVERPAYMENT_CENTS),
    variations.PAYS_BY_TRANSFER_TOO: pay_by_transfer_too,
    variations.LAPSES: let_authorization_expire,
    variations.RESTARTS: restart_shop,
}


def play(effect: Action | ElapsedTime | ReplacementScene, scene: Scene) -> Order:
    """Perform the replacement for an action; return the order."""
    if isinstance(effect, Action):
        return scene.perform(effect)
    if isinstance(effect, ReplacementScene):
        return SCENE_PLAYERS[effect](scene)
    scene.perform()
    scene.advance_to(Period.parse(effect.period).after(scene.project.now()))
    return scene.order


def authorization_expiries(project: "Project") -> list[datetime]:
    """Return the expiry times, all in the future, of all open authorizations."""
    now = project.now()
    attempts = [order.last_transaction for order in project.epoch.store.orders_newest_first()]
    authorizations = [attempt.authorization for attempt in attempts if attempt is not None]
    return [
        each.expires_at
        for each in authorizations
        if each is not None and each.remaining_cents and each.expires_at >= now
    ]


def play_after_advance(
    effect: ElapsedTime | ReplacementScene, project: "Project", restart: Callable[[], None] | None
) -> None:
    """Let more time pass after an advance, or restart the shop."""
    if isinstance(effect, ElapsedTime):
        _advance_to(project, Period.parse(effect.period).after(project.now()))
    elif effect is variations.RESTARTS:
        _restart_and_settle(project, restart)
    elif expiries := authorization_expiries(project):
        _advance_to(project, ONE_SECOND_PERIOD.after(min(expiries)))


def _expire_authorization(project: "Project", order: Order) -> None:
    """Expire the authorization during a call; webhooks and jobs run after the call."""
    attempt = order.last_transaction
    if attempt is None or attempt.authorization is None or project.epoch.is_advancing:
        return
    epoch, expiries = project.epoch, ONE_SECOND_PERIOD.after(attempt.authorization.expires_at)
    with project.blocking_edits(epoch):
        epoch.timeline.move_to(max(epoch.now(), expiries))
    with project.edit(epoch, epoch.timeline.now) as edit:
        edit.state = edit.state._replace(clock=edit.state.clock.set(edit.now))
    run_due(project)


def _act_as_merchant(project: "Project", order: Order, action: str, share: int = 1) -> None:
    """Capture or void the remaining amount, or one share, as a merchant does in the back office."""
    attempt = order.last_transaction
    if attempt is not None and attempt.authorization is not None:
        act_as_merchant(project, order.id, action, attempt.authorization.remaining_cents // share)


EVENT_APPLIERS: Final[Mapping[PriorEvent, Callable[["Project", Order], object]]] = {
    variations.MANUAL_CAPTURE: lambda project, order: _act_as_merchant(project, order, "capture"),
    variations.MANUAL_PART_CAPTURE: lambda project, order: _act_as_merchant(project, order, "capture", 2),
    variations.CUSTOMER_PAYMENT: lambda project, order: act(project, order.id, Action(CUSTOMER, "pay")),
    variations.MANUAL_VOID: lambda project, order: _act_as_merchant(project, order, "void"),
    variations.AUTHORIZATION_EXPIRY: _expire_authorization,
    variations.ORDER_CHANGE: lambda project, order: update(
        project, order.id, {"description": CHANGED_DESCRIPTION}, [], None
    ),
}


def apply_event(effect: PriorEvent, project: "Project", path: str) -> None:
    """Apply an event to a call's order before the response, if the order's state allows the event."""
    with suppress(Refusal):
        EVENT_APPLIERS[effect](project, project.find_order(order_id_of(path)))
