"""Performs replacements for the actions of a rehearsed test, and events before a call by the shop."""

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
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
from payment_sandbox.scenarios.variation import Act, PriorEvent
from pytest_payment_sandbox.rehearsal.changes import order_id_of

if TYPE_CHECKING:
    from payment_sandbox.projects.project import Project

SETTLE_SECONDS: Final = 10.0
OVERPAYMENT_CENTS: Final = 100
ONE_SECOND_PERIOD: Final = Period.parse("PT1S")
ONE_SECOND: Final = timedelta(seconds=1)
CHANGED_DESCRIPTION: Final = "Changed by hand"


class Scene(NamedTuple):
    """The state before an action on an order, or after an advance, which concerns no order."""

    project: "Project"
    restart: Callable[[], None]
    order_id: str = ""
    action: Action | None = None
    do: Do | None = None
    visit: Callable[[Order, int], None] = lambda order, tabs: None
    earlier_open_orders: Sequence[Order] = ()  # earlier, still open orders that the shop knows

    @property
    def order(self) -> Order:
        """The current order."""
        return self.project.find_order(self.order_id)

    def perform(self, action: Action | None = None) -> None:
        """Perform the given action, or else the scene's own, if the order's state allows it."""
        chosen = action or self.action
        if self.do is not None and chosen is not None:
            with suppress(Refusal):
                self.do(chosen)

    def act(self, action: Action, order_id: str = "") -> None:
        """Perform an action apart from the scene's own, on its order by default."""
        with suppress(Refusal):
            act(self.project, order_id or self.order_id, action)

    def send(self, more_cents: int) -> None:
        """Send the amount plus ``more_cents``, if the sum is positive."""
        assert self.action is not None, "an advance sends no money"
        cents = (self.action.amount_cents or self.order.amount_cents) + more_cents
        if cents > 0:
            self.perform(self.action._replace(amount_cents=cents))

    def advance_to(self, until: datetime) -> None:
        """Advance the clock: run the due events, and deliver their webhooks."""
        _release_webhooks(self.project)
        with suppress(Refusal):
            advance(self.project, lambda now: max(now, until))

    def return_to_shop(self, tabs: int) -> None:
        """Return to the shop in the given number of tabs, before any webhook, which waits for this call."""
        self.visit(self.order, tabs)


def _release_webhooks(project: "Project") -> None:
    """Release the webhooks before this request ends, because advancing the clock waits for webhooks."""
    held = caller().held
    if held is not None:
        project.release(held)


def deliver_webhooks(project: "Project") -> None:
    """Deliver the due webhooks, and wait for their answers."""
    _release_webhooks(project)
    project.settle(SETTLE_SECONDS)


def _choose_again(scene: Scene) -> None:
    """Choose the method of the last attempt once more."""
    attempt = scene.order.last_transaction
    if attempt is not None:
        scene.act(Action(CUSTOMER, "choose", payment_method=attempt.payment_method))


def _expiries(order: Order) -> list[datetime]:
    """Return the expiry times of an order's page and newest attempt."""
    attempt = order.last_transaction
    expiries = [order.expires_at, attempt.expires_at if attempt is not None else None]
    return [end for end in expiries if end is not None]


def _expire(scene: Scene) -> None:
    expiries = _expiries(scene.order)
    if expiries:
        scene.advance_to(ONE_SECOND_PERIOD.after(max(expiries)))


def _wait_to_last_moment(scene: Scene) -> None:
    expiries = _expiries(scene.order)
    if expiries:
        scene.advance_to(min(expiries) - ONE_SECOND)


def _expire_earlier(scene: Scene) -> None:
    """Wait until an earlier order has expired, if the current order is still valid then."""
    expiries = [end for other in scene.earlier_open_orders for end in _expiries(other)]
    if expiries and min(expiries) < min(_expiries(scene.order), default=min(expiries)):
        scene.advance_to(ONE_SECOND_PERIOD.after(min(expiries)))


def earlier_open_orders(project: "Project", order: Order, known: Container[str]) -> list[Order]:
    """Return earlier open orders, except orders whose response was lost: they have no page."""
    orders = [each for each in project.epoch.store.orders_newest_first() if each.id != order.id]
    return [each for each in orders if each.is_open and not each.is_refund and each.id in known]


def _act_on_earlier_attempts(scene: Scene, action: str) -> None:
    """Pay or cancel on the pages of earlier orders."""
    for other in scene.earlier_open_orders:
        scene.act(Action(CUSTOMER, action), other.id)


def offered_transfer(project: "Project", order: Order) -> str | None:
    """Return the method for a transfer on the hosted page of an order, if its money can arrive."""
    settings = project.settings
    names = offered_methods(settings, order) if order.is_hosted and not settings.is_test else []
    kinds = {name: METHODS_BY_NAME[settings.method(name) or ""].capabilities.page for name in names}
    return next((name for name, kind in kinds.items() if kind == "transfer"), None)


def _pay_by_transfer_too(scene: Scene) -> None:
    """Choose a transfer, then perform the action with the method chosen before; the transfer arrives, too."""
    transfer, attempt = offered_transfer(scene.project, scene.order), scene.order.last_transaction
    if transfer is None or attempt is None or scene.action is None:
        scene.perform()
        return
    for method in (transfer, attempt.payment_method):
        scene.act(Action(CUSTOMER, "choose", payment_method=method))
    for action in (scene.action, Action(BANK, "credit")):  # another attempt than the one whose page is open
        scene.act(action)
        deliver_webhooks(scene.project)


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


def _lapse(scene: Scene) -> None:
    """Wait until the order's authorization has expired, or after an advance the first of all."""
    attempt = scene.order.last_transaction if scene.order_id else None
    own = [attempt.authorization.expires_at] if attempt is not None and attempt.authorization else []
    expiries = own if scene.order_id else authorization_expiries(scene.project)
    if expiries:
        scene.advance_to(ONE_SECOND_PERIOD.after(min(expiries)))


def _restart(scene: Scene) -> None:
    deliver_webhooks(scene.project)
    scene.restart()


ACT_PLAYERS: Final[Mapping[Act, Callable[[Scene], None]]] = {
    variations.DO: Scene.perform,
    variations.RETURN: lambda scene: scene.return_to_shop(1),
    variations.RETURN_IN_TABS: lambda scene: scene.return_to_shop(2),
    variations.CHOOSE_AGAIN: _choose_again,
    variations.EXPIRE: _expire,
    variations.WAIT_TO_LAST_MOMENT: _wait_to_last_moment,
    variations.PAY_EARLIER: lambda scene: _act_on_earlier_attempts(scene, "pay"),
    variations.CANCEL_EARLIER: lambda scene: _act_on_earlier_attempts(scene, "cancel"),
    variations.EXPIRE_EARLIER: _expire_earlier,
    variations.SEND_LESS: lambda scene: scene.send(-1),
    variations.SEND_MORE: lambda scene: scene.send(OVERPAYMENT_CENTS),
    variations.TRANSFER_TOO: _pay_by_transfer_too,
    variations.LAPSE_AUTHORIZATION: _lapse,
    variations.RESTART_SHOP: _restart,
}


def play(acts: Iterable[Act | Action | str], scene: Scene) -> None:
    """Play the acts of a scene; a text is a period that passes."""
    for each in acts:
        if isinstance(each, Act):
            ACT_PLAYERS[each](scene)
        elif isinstance(each, Action):
            scene.perform(each)
        else:
            scene.advance_to(Period.parse(each).after(scene.project.now()))


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
