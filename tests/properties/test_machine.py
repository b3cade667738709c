"""Random sequences of operations and clock moves keep the books."""

import itertools
import os
import sys
from datetime import UTC, datetime
from functools import partial
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    initialize,
    invariant,
    multiple,
    rule,
    run_state_machine_as_test,
)

from payment_sandbox.methods import METHOD_NAMES
from payment_sandbox.operations import authorizations
from payment_sandbox.operations.act import act, act_on_attempt
from payment_sandbox.operations.advance import AdvanceLimits
from payment_sandbox.operations.cancel import cancel
from payment_sandbox.operations.clock import advance_clock
from payment_sandbox.operations.create_order import create_order
from payment_sandbox.operations.due import handler_of
from payment_sandbox.operations.refund import refund
from payment_sandbox.operations.update import update
from payment_sandbox.orders.actions import Action
from payment_sandbox.orders.lines import LineQuantity
from payment_sandbox.orders.order import Order
from payment_sandbox.orders.refunds import refundable_cents
from payment_sandbox.orders.refusals import Invalid, Refusal
from payment_sandbox.orders.statuses import ORDER_TRANSITIONS, TRANSACTION_TRANSITIONS
from payment_sandbox.orders.webhooks import ATTEMPTS_MAX, Reply, WebhookRequest
from payment_sandbox.serving.courier import Courier
from payment_sandbox.serving.services import ServerServices
from payment_sandbox.web.answers.order import amount_details
from tests.properties.strategies import (
    ACTS,
    AMOUNTS,
    LINES,
    MODES,
    QUANTITIES,
    TAKES,
    orders_of,
    snapshot,
)
from tests.support.projects import made_project

EXAMPLES = int(os.environ.get("SANDBOX_EXAMPLES", "300"))
STEPS = 60


class Books(RuleBasedStateMachine):
    """One project, its customers, banks and merchant, in any order."""

    orders = Bundle("orders")
    steps = 0

    @initialize(
        target=orders,
        mode=st.sampled_from(["test", "live"]),
        shown=st.sampled_from(["completed", "accepted"]),
    )
    def begin(self, mode: str, shown: str) -> Any:
        """A fresh project with an order, whose shop answers as the machine says."""
        self.answer = 200
        self.over: set[int] = set()
        self.courier = Courier(send=self.send)
        self.project = made_project(
            datetime(2028, 1, 31, 12, tzinfo=UTC),
            ServerServices(self.courier),
            mode=mode,
            authorized_status=shown,
            webhook_url="http://shop.example/",
            seed=1,
        )
        self.seen = self.project.epoch.timeline.now
        return create_order(self.project, {"currency": "EUR", "amount": 1000, "client": {}}).id

    def send(self, request: WebhookRequest, copies: int) -> list[Reply]:
        """The shop's answers, without a wire."""
        return [Reply(0.0, status=self.answer)] * copies

    def tried(self, call: Any) -> Order | None:
        """Do something that may be refused; a refusal changes nothing."""
        self.project.settle()
        before = snapshot(self.project)
        try:
            done: Order | None = call()
        except (Refusal, Invalid):
            assert snapshot(self.project) == before
            return None
        return done

    @rule(target=orders, method=st.sampled_from([*METHOD_NAMES, None]), data=st.data())
    def create(self, method: str | None, data: st.DataObject) -> Any:
        """An order by any method, in any capture mode; refused ones are no target."""
        body: dict[str, Any] = {
            "currency": "EUR",
            "amount": data.draw(st.sampled_from([2000, 2000, 66601, 66602, 1])),
            "client": {},
            "customer": {
                "email_address": data.draw(st.sampled_from(["a@b", "pays@b", "needs-time@b", "fails@b"]))
            },
            "order_lines": LINES,
        }
        if method is not None:
            transaction = {"payment_method": method, "payment_method_details": {"issuer_id": "SBXANL2A"}}
            mode = data.draw(st.sampled_from([None, "manual", "delayed"]))
            period = data.draw(st.sampled_from([None, "PT5M", "P1M"]))
            transaction |= {"capture_mode": mode} if mode else {}
            transaction |= {"expiration_period": period} if period else {}
            body["transactions"] = [transaction]
        order = self.tried(lambda: create_order(self.project, body))
        return order.id if order is not None else multiple()

    @rule(
        target=orders, method=st.sampled_from(["credit-card", "pay-later-a", "invoice-later-b"]), mode=MODES
    )
    def authorize(self, method: str, mode: str) -> Any:
        """An order that its customer has authorized: most rules are about those."""
        transaction = {"payment_method": method, "capture_mode": mode, "expiration_period": "P1M"}
        body = {
            "currency": "EUR",
            "amount": 2000,
            "client": {},
            "customer": {"country": "NL"},
            "order_lines": LINES,
            "transactions": [transaction],
        }
        order = create_order(self.project, body)
        if order.status == "new":
            act(self.project, order.id, Action("customer", "pay"))
        return order.id

    @rule(
        target=orders,
        days=st.sampled_from([1, 31]),
        second=st.sampled_from(["credit-card", "pay-later-a"]),
        is_paid=st.booleans(),
    )
    def transfer_late(self, days: int, second: str, is_paid: bool) -> Any:
        """A hosted order whose customer chooses a transfer, and another method days later."""
        body = {
            "currency": "EUR",
            "amount": 2000,
            "client": {},
            "customer": {"country": "NL"},
            "order_lines": LINES,
            "expiration_period": "P90D",
        }
        order = create_order(self.project, body).id
        choose = Action("customer", "choose", payment_method="bank-transfer")
        self.tried(lambda: act(self.project, order, choose))
        advance_clock(self.project, {"by": f"P{days}D"}, AdvanceLimits(1_000_000))
        self.tried(lambda: act(self.project, order, choose._replace(payment_method=second)))
        if is_paid:
            self.tried(lambda: act(self.project, order, Action("customer", "pay")))
        return order

    @rule(order=orders, cents=st.none() | AMOUNTS)
    def bank_credits_any_attempt(self, order: str, cents: int | None) -> None:
        """Also one that is not the newest any more: money comes when it comes."""
        credit = Action("bank", "credit", amount_cents=cents)
        for attempt in self.project.find_order(order).transactions:
            self.tried(partial(act_on_attempt, self.project, order, attempt.id, credit))

    @rule(order=orders, action=st.sampled_from(ACTS), method=st.sampled_from(METHOD_NAMES), amount=AMOUNTS)
    def somebody_acts(self, order: str, action: Action, method: str, amount: int) -> None:
        """A customer, bank, screening or processor."""
        chosen = action._replace(payment_method=method, amount_cents=amount if amount % 2 else None)
        self.tried(lambda: act(self.project, order, chosen))

    @rule(order=orders, take=TAKES)
    def capture_or_void(self, order: str, take: Any) -> None:
        """In full, by amount, by lines."""
        found = self.project.epoch.store.order(order)
        if found is not None and found.transactions:
            transaction = found.transactions[-1].id
            self.tried(
                lambda: authorizations.apply_to_ledger(self.project, order, transaction, take, None)[0]
            )

    @rule(target=orders, order=orders, amount=st.none() | AMOUNTS, lines=st.none() | QUANTITIES)
    def refund(self, order: str, amount: int | None, lines: list[LineQuantity] | None) -> Any:
        """By amount, by lines, or all that is left; the record is an order for the other rules."""
        body: dict[str, Any] = {"amount": amount} if amount is not None else {}
        if lines is not None:
            body["order_lines"] = [line._asdict() for line in lines]
        record = self.tried(lambda: refund(self.project, order, body, None).record)
        return record.id if record is not None else multiple()

    @rule(order=orders)
    def cancel(self, order: str) -> None:
        """As long as no money moved."""
        self.tried(lambda: cancel(self.project, order, None))

    @rule(order=orders, amount=AMOUNTS)
    def update(self, order: str, amount: int) -> None:
        """As long as no customer acted."""
        self.tried(lambda: update(self.project, order, {"amount": amount}, (), None))

    @rule(by=st.sampled_from(["PT1S", "PT2M", "PT5M", "PT1H", "P2D", "P1M", "P1Y"]))
    def advance(self, by: str) -> None:
        """Time passes."""
        advance_clock(self.project, {"by": by}, AdvanceLimits(1_000_000))

    @rule(until=st.sampled_from(["next", "idle"]))
    def advance_until(self, until: str) -> None:
        """To the next event, or to the last."""
        advance_clock(self.project, {"until": until}, AdvanceLimits(1_000_000))

    @rule(status=st.sampled_from([200, 302, 404, 500]))
    def shop_answers(self, status: int) -> None:
        """From now on."""
        self.answer = status

    @invariant()
    def the_books_balance(self) -> None:
        """Captured + voided + remaining = original; refunded at most what was captured."""
        if not hasattr(self, "project"):
            return
        Books.steps += 1
        for order in orders_of(self.project):
            details = amount_details(order)
            assert details["captured"] + details["voided"] + details["remaining"] == details["original"]
            assert min(details.values()) >= 0
            assert 0 <= refundable_cents(order) <= order.received_cents
            if order.received_cents >= order.amount_cents:
                assert not any(a.is_open or a.is_capturable for a in order.transactions), "nobody pays twice"
            for attempt in order.transactions:
                ledger = attempt.authorization
                if ledger is not None:
                    parts = (ledger.captured_cents, ledger.voided_cents, ledger.remaining_cents)
                    assert sum(parts) == ledger.original_cents == attempt.amount_cents
                    assert min(parts) >= 0
                    assert all(entry.amount_cents > 0 for entry in ledger.entries)

    @invariant()
    def statuses_follow_the_tables(self) -> None:
        """No status is outside of them, and every event of a transaction follows from the one before."""
        if not hasattr(self, "project"):
            return
        for order in orders_of(self.project):
            assert order.status in ORDER_TRANSITIONS
            for attempt in order.transactions:
                path = [event.event for event in attempt.events]
                assert path[-1] == attempt.status
                for before, after in itertools.pairwise(path):
                    assert after in TRANSACTION_TRANSITIONS[before].values()

    @invariant()
    def deliveries_are_bounded_and_time_goes_on(self) -> None:
        """At most ten attempts each; the clock never goes back."""
        if not hasattr(self, "project"):
            return
        self.project.settle()
        assert all(len(found.attempts) <= ATTEMPTS_MAX for found in self.project.epoch.store.deliveries())
        assert self.project.epoch.timeline.now >= self.seen
        self.seen = self.project.epoch.timeline.now

    @invariant()
    def what_is_over_stays_over(self) -> None:
        """So the agenda may forget it, whatever comes."""
        if not hasattr(self, "project"):
            return
        epoch = self.project.epoch
        epoch.cleanup_length = sys.maxsize  # forget nothing, to see what would have become of it
        for due in epoch.timeline:
            if handler_of(due.item).is_over(epoch, due.item, due.at):
                self.over.add(due.sequence)
            if due.sequence in self.over:
                assert not handler_of(due.item).applies(epoch, due.item, due.at), due.item.label

    def teardown(self) -> None:
        """No thread is left."""
        if hasattr(self, "courier"):
            self.courier.stop()


def test_random_sequences_keep_the_books() -> None:
    """At least 10,000 steps of merchants, customers, banks, screenings, processors and clocks."""
    Books.steps = 0
    run_state_machine_as_test(
        Books,
        settings=settings(
            max_examples=EXAMPLES,
            stateful_step_count=STEPS,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
    assert Books.steps >= 40 * EXAMPLES
