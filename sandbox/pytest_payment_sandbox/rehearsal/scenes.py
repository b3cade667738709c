"""What customers, banks and merchants do instead of an action, besides it, or before a call."""

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

from payment_sandbox.kernel.times import Period
from payment_sandbox.operations.act import act
from payment_sandbox.operations.advance import advance
from payment_sandbox.operations.agenda import next_due
from payment_sandbox.operations.by_hand import act_as_merchant
from payment_sandbox.orders.actions import CUSTOMER, Action
from payment_sandbox.orders.order import Order
from payment_sandbox.orders.refusals import Refusal
from payment_sandbox.projects.caller import caller
from payment_sandbox.projects.jobs import Job
from payment_sandbox.projects.project import Project

SETTLE_SECONDS: Final = 10.0
RESTART_FIXTURE: Final = "payment_shop_restart"
ONE_SECOND: Final = timedelta(seconds=1)
DAY: Final = timedelta(days=1)
AS_USUAL: Final = Period.parse("PT0S")
HOURLY: Final = Period.parse("PT1H")
DAILY: Final = Period.parse("P1D")
RARELY: Final = Period.parse("P1000D")
_NUMBER: Final = re.compile(rb"(?<![^=:,\[\s])([1-9]\d{0,5})(?=\s*(?:[&,}\]]|\r\n--|$))")


class Scene(NamedTuple):
    """The moment of an action on an order, or after an advance, which concerns no order."""

    run: Any  # the ``TestRun``, whose module imports this one
    order_id: str = ""
    action: Action | None = None
    perform: Callable[[Action], Any] = lambda action: None
    earlier: Sequence[Order] = ()  # earlier orders that can still be paid

    @property
    def project(self) -> Project:
        """The project of the test."""
        project: Project = self.run.project
        return project

    @property
    def order(self) -> Order:
        """The current order."""
        return self.project.find_order(self.order_id)

    def do(self, action: Action | None = None) -> None:
        """Perform an action, by default the scene's own, if the order's state allows it."""
        chosen = action or self.action
        if chosen is not None:
            with suppress(Refusal):
                self.perform(chosen)

    def act(self, name: str, order_id: str = "", **more: Any) -> None:
        """Perform an action of a customer apart from the scene's own, by default on its order."""
        with suppress(Refusal):
            act(self.project, order_id or self.order_id, Action(CUSTOMER, name, **more))

    def act_on_earlier(self, name: str, most: int | None = None) -> None:
        """Perform an action of the customer on earlier orders."""
        for other in self.earlier[:most]:
            self.act(name, other.id)

    def send(self, more_cents: int) -> None:
        """Transfer more than the amount, or less."""
        assert self.action is not None, "an advance sends no money"
        cents = (self.action.amount_cents or self.order.amount_cents) + more_cents
        if cents > 0:
            self.do(self.action._replace(amount_cents=cents))

    def returns(self) -> None:
        """Return to the shop, if it has a page for that, before any webhook, which waits for this call."""
        if self.order.return_url and self.run.browser is not None:
            with suppress(Exception):  # in production, the customer gets an error page
                self.run.browser.returns(self.order_id)


def orders_of(project: Project) -> list[Order]:
    """Return all orders and refunds, oldest first."""
    return [*project.epoch.store.orders_newest_first()][::-1]


def release_webhooks(project: Project) -> None:
    """Release the webhooks of the current call, because advancing the clock waits for webhooks."""
    held = caller().held
    if held is not None:
        project.release(held)


def deliver_webhooks(project: Project) -> None:
    """Deliver the due webhooks, and wait for their answers."""
    release_webhooks(project)
    project.settle(SETTLE_SECONDS)


def pass_time(project: Project, until: datetime, pace: Period = DAILY) -> None:
    """Advance the clock; jobs run at most at this pace, and before each event."""
    release_webhooks(project)
    epoch = project.epoch
    while project.now() < until:
        now, due = project.now(), next_due(epoch, until)
        stop = max(due.at, now) if due is not None else until
        with _paced(epoch.jobs.by_next_run(), pace, now), suppress(Refusal):
            if due is not None and stop - ONE_SECOND > now:  # what is due before it runs once more
                ready = [job for job in epoch.jobs.by_next_run() if job.at < stop]
                if ready:
                    advance(project, lambda time: max(time, stop - 2 * ONE_SECOND))  # noqa: B023
                for job in ready:
                    job.at = stop - ONE_SECOND
            advance(project, lambda time: max(time, stop))  # noqa: B023
        if project.now() <= now and (due is None or next_due(epoch, until) == due):  # nothing moves any more
            return


@contextmanager
def _paced(jobs: Sequence[Job], pace: Period, now: datetime) -> Iterator[None]:
    """Let jobs run no more often than at this pace, from now on."""
    periods = [job.period for job in jobs]
    try:
        for job in jobs:
            job.at = max(job.at, now)
            if job.period.after(job.at) < pace.after(job.at):
                job.period = pace
        yield
    finally:
        for job, period in zip(jobs, periods, strict=True):
            job.period = period


def wait_until(project: Project, until: datetime) -> None:
    """Let time pass in the middle of a test: jobs run as usual for an hour, then hourly, then daily."""
    start = project.now()
    for pace, hours in ((AS_USUAL, 1), (HOURLY, 6)):
        pass_time(project, min(until, start + timedelta(hours=hours)), pace)
    pass_time(project, until, DAILY)


# Actions of the customer


def open_page(scene: Scene) -> None:
    """Open the payment page, and leave."""
    scene.do(Action(CUSTOMER, "visit"))
    scene.returns()


def return_first(scene: Scene) -> None:
    """Return before the webhooks."""
    scene.do()
    scene.returns()


def fail_then_pay(scene: Scene) -> None:
    """Fail, choose the same method again, and pay."""
    scene.do(Action(CUSTOMER, "fail"))
    attempt = scene.order.last_transaction
    if attempt is not None:
        scene.act("choose", payment_method=attempt.payment_method)
    scene.do()


def _expiries(order: Order) -> list[datetime]:
    attempt = order.last_transaction
    expiries = [order.expires_at, attempt.expires_at if attempt is not None else None]
    return [end for end in expiries if end is not None]


def pay_too_late(scene: Scene) -> None:
    """Act once the order has expired."""
    expiries = _expiries(scene.order)
    if expiries:
        wait_until(scene.project, max(expiries) + ONE_SECOND)
    scene.do()


def pay_at_last_moment(scene: Scene) -> None:
    """Act a second before the expiry."""
    expiries = _expiries(scene.order)
    if expiries:
        wait_until(scene.project, min(expiries) - ONE_SECOND)
    scene.do()


def lapse(scene: Scene) -> None:
    """Act, and wait until the authorization has expired."""
    scene.do()
    attempt = scene.order.last_transaction
    if attempt is not None and attempt.authorization is not None:
        wait_until(scene.project, attempt.authorization.expires_at + ONE_SECOND)


def restart(scene: Scene) -> None:
    """Act, and restart the shop."""
    scene.do()
    deliver_webhooks(scene.project)
    scene.run.find_fixture(RESTART_FIXTURE)()


def pay_later(scene: Scene) -> None:
    """Do not act now, but pay after the next action."""
    scene.run.after_action.append(lambda: scene.act("pay"))


# What the merchant does by hand before a call


def act_by_hand(action: str, project: Project, order: Order) -> None:
    """Capture or void what remains."""
    attempt = order.last_transaction
    if attempt is not None and attempt.authorization is not None:
        with suppress(Refusal):
            act_as_merchant(project, order.id, action, attempt.authorization.remaining_cents)


# Forms


def has_parts(body: bytes) -> bool:
    """Whether a form has a number above one, which can be split."""
    number = _NUMBER.search(body)
    return number is not None and int(number[1]) > 1


def with_one_less(body: bytes) -> bytes:
    """Reduce the first number of a form by one."""
    return _NUMBER.sub(lambda number: str(int(number[1]) - 1).encode(), body, count=1)


def with_only_one(body: bytes) -> bytes:
    """Change the first number of a form to one."""
    return _NUMBER.sub(b"1", body, count=1)
