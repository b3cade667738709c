"""Every amount in a finding is in the ledger of its order."""

import re
from typing import Any

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from payment_sandbox.client.project_review import Review
from payment_sandbox.judge import Finding, cents_at_risk, review_order
from payment_sandbox.judge.standing import amounts
from payment_sandbox.orders.amounts import euros
from payment_sandbox.scenarios.risks import DEBT
from payment_sandbox.testing.project_fixture import PaymentSandbox
from tests.support.driver import CUSTOMER, LINES
from tests.support.in_process import project_of, shop_that

AMOUNT = 2450
METHODS: dict[str, dict[str, Any]] = {
    "bank-transfer": {},
    "wallet-web": {},
    "credit-card": {"capture_mode": "manual", "expiration_period": "P7D"},
    "pay-later-a": {},
}
TWICE = "paid twice"
STEPS = ("begin", "pay", "credit", "capture", "refund", "advance")
LINE = {**LINES[0], "amount": AMOUNT, "quantity": 1}
PAID_RISK = "a customer has paid and waits for goods"


class History:
    """One order in a shop that fails at each webhook, with the money that moved."""

    def __init__(self, sandbox: PaymentSandbox, method: str) -> None:
        self.sandbox = sandbox
        self.orders = f"{sandbox.base_url}/v1/orders/"
        attempts = [{"payment_method": method, **METHODS[method]}] if method in METHODS else []
        order = {"currency": "EUR", "amount": AMOUNT, "order_lines": [LINE], "customer": CUSTOMER}
        created = {**order, **({"transactions": attempts} if attempts else {})}
        self.order = sandbox.session.post(self.orders, json=created).json()
        self.method, self.received, self.refunded = method, 0, 0
        if method == TWICE:
            for each in ("bank-transfer", "wallet-web"):
                self._act("customer", "choose", payment_method=each)

    def play(self, step: str, cents: int) -> None:
        """Play a step, and record its money if the service accepts it."""
        url = f"{self.orders}{self.order['id']}"
        if step == "advance":
            self.sandbox.clock.advance("P1D")
        elif step == "begin":
            self._act("customer", "visit")
        elif step == "pay":
            self.received += AMOUNT * (self._act("customer", "pay") and self.method in ("wallet-web", TWICE))
        elif step == "credit":
            self.received += cents * self._act("bank", "credit", amount=cents)
        elif step == "capture":
            attempts = self.sandbox.client.order(self.order["id"])["transactions"]
            path = f"{url}/transactions/{attempts[0]['id']}/captures/amount/"
            self.received += cents * self.sandbox.session.post(path, json={"amount": cents}).ok
        else:
            self.refunded += cents * self.sandbox.session.post(f"{url}/refunds/", json={"amount": cents}).ok

    def _act(self, actor: Any, action: Any, **fields: Any) -> bool:
        try:
            self.sandbox.act(self.order["id"], actor, action, **fields)
        except Exception as refusal:
            if getattr(refusal, "status", 0) not in (400, 409):
                raise
            return False
        return True


@settings(
    max_examples=15,
    derandomize=True,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    histories=st.lists(
        st.tuples(
            st.sampled_from([*METHODS, TWICE]),
            st.lists(st.tuples(st.sampled_from(STEPS), st.sampled_from([50, 400, 2450])), max_size=6),
        ),
        min_size=1,
        max_size=2,
    )
)
@example([(TWICE, [("pay", 50), ("credit", 2450), ("advance", 50), ("refund", 400)])])
@example(
    [("bank-transfer", [("credit", 400), ("credit", 2450), ("advance", 50)]), ("wallet-web", [("pay", 50)])]
)
@example([("pay-later-a", [("begin", 50), ("pay", 50), ("capture", 400), ("refund", 50), ("advance", 50)])])
def test_amounts_are_those_of_the_ledger(payment_sandbox: PaymentSandbox, histories: Any) -> None:
    """A sentence about paid money has the received amount without refunds, and no other amount."""
    payment_sandbox.client.reset()
    payment_sandbox.client.change_settings(mode="live")
    payment_sandbox.deliver_to(shop_that(lambda _: ("", 503)), "http://testserver/webhook")
    played = [History(payment_sandbox, method) for method, _ in histories]
    for history, (_, steps) in zip(played, histories, strict=True):
        for step, cents in steps:
            history.play(step, cents)
    by_order = {history.order["id"]: history for history in played}
    findings = payment_sandbox.review()
    for finding in findings:
        if finding.order_id in by_order:
            compare(finding, by_order[finding.order_id])
    groups = payment_sandbox.client.reviewed()["groups"]
    for group in groups:
        assert group["amount"] == cents_in(group["risk"])
        assert len(group["orders"]) == len(set(group["orders"]) & set(by_order))
        alike = [
            each
            for each in findings
            if (each.rule, each.advice) == (group["name"].partition(".")[0], group["advice"])
        ]
        consequence = group["risk"].removeprefix(f"{euros(group['amount'])}: ")
        assert group["amount"] == cents_at_risk(each for each in alike if each.consequence == consequence)
    compare_pages(payment_sandbox, groups)
    compare_reports(payment_sandbox, findings)
    for history in played:
        compare_order(payment_sandbox, history, findings)


def compare_reports(sandbox: PaymentSandbox, findings: Review) -> None:
    """Compare the amounts in pytest's report of a failure and of a warning, with the findings."""
    open_risks = sorted(f"Risk: {each.risk}." for each in findings if each.is_open and each.risk)
    report = [line.strip() for line in sandbox.timeline().splitlines() if line.startswith("    Risk: ")]
    assert sorted(report) == sorted(
        f"Risk: {each.risk}." for each in findings if each.is_open and each.amount
    )
    warning = [line.strip().partition(" See ")[0] for line in findings.problems().splitlines()]
    assert sorted(line for line in warning if line.startswith("Risk: ")) == open_risks


def compare_order(sandbox: PaymentSandbox, history: History, findings: Review) -> None:
    """Compare the money and the mistakes on the page of an order with the model and the project's review."""
    order_id = history.order["id"]
    project = project_of(sandbox)
    order = project.find_order(order_id)
    money = {state: cents for state, cents, _ in amounts(order, project.now())}
    assert money.get("received", money.get("captured", 0)) == history.received
    assert money.get("refunded", 0) == history.refunded
    page = text_of(sandbox, f"orders/{order_id}/")
    if history.received:
        assert euros(history.received) in page
    own = {each.rule: each for each in review_order(project.epoch, order) if each.order_id == order_id}
    of_project = {each.rule: each for each in findings if each.order_id == order_id}
    assert {rule: each.amount for rule, each in own.items()} == {
        rule: each.amount for rule, each in of_project.items()
    }


def compare_pages(sandbox: PaymentSandbox, groups: Any) -> None:
    """Compare the sums and the counts of the front page and the page of mistakes with those of the API."""
    front, mistakes = text_of(sandbox, "orders/"), text_of(sandbox, "mistakes/")
    for group in groups:
        count = len(group["orders"])
        assert group["risk"].lower() in mistakes
        assert count < 2 or f"{count} orders" in mistakes
        if group["is_open"] and group["orders"]:
            assert f">{count} order{'s' if count > 1 else ''}</span>" in front
            assert f">{euros(group['amount']) if group['amount'] else ''}</span>" in front


def text_of(sandbox: PaymentSandbox, view: str) -> str:
    """The text of a view of the dashboard."""
    return sandbox.session.get(f"{sandbox.base_url}/dashboard/{sandbox.project_id}/{view}").text.lower()


def compare(finding: Finding, history: History) -> None:
    """Compare a finding with the money that moved."""
    paid = history.received
    assert cents_in(finding.risk) == finding.amount
    if PAID_RISK in finding.risk:  # no call of the shop has moved money, so it may not know of the payment
        assert finding.amount == paid > 0
        assert not history.refunded
        assert history.method not in ("credit-card", "pay-later-a")
    if finding.rule in ("HOOK-13", "A45"):
        assert finding.amount == paid - history.refunded - AMOUNT
    if finding.rule == "HOOK-09" and not paid:
        assert PAID_RISK not in finding.risk
        assert finding.amount in (0, AMOUNT)


def cents_in(risk: str) -> int:
    """The amount at the start of a risk, in cents; 0 if there is none."""
    match = re.match(r"€([\d,]+)\.(\d\d): ", risk)
    return int(match[1].replace(",", "")) * 100 + int(match[2]) if match else 0


def test_one_cause_with_other_money_is_another_group(payment_sandbox: PaymentSandbox) -> None:
    """The sentence about a sum is true of all its cents: paid, owed to a customer, or only authorized."""
    payment_sandbox.deliver_to(shop_that(lambda _: ("", 503)), "http://testserver/webhook")
    paid, refunded, authorized = (
        History(payment_sandbox, method) for method in ("wallet-web", "wallet-web", "credit-card")
    )
    for history in (paid, refunded, authorized):
        history.play("pay", 0)
    refunded.play("refund", 400)
    groups = payment_sandbox.client.reviewed()["groups"]
    sums = {group["risk"]: group["orders"] for group in groups}
    assert sums == {
        f"{euros(AMOUNT)}: {PAID_RISK}": [paid.order["id"]],
        f"{euros(AMOUNT)}: a customer has authorized the payment and waits for goods": [
            authorized.order["id"]
        ],
        f"{euros(400)}: {DEBT}": [refunded.order["id"]],
        "a later payment goes unnoticed": [refunded.order["id"]],
    }


def test_an_order_created_again_counts_once(payment_sandbox: PaymentSandbox) -> None:
    """A basket whose order is created again after a lost response is one mistake with one amount."""
    lost = {"when": {"method": "POST", "nth": 1}, "then": {"status": 503, "phase": "after"}}
    payment_sandbox.client.faults(faults=[lost])
    body = {"currency": "EUR", "amount": AMOUNT, "merchant_order_id": "A-1"}
    for _ in range(2):
        payment_sandbox.session.post(f"{payment_sandbox.base_url}/v1/orders/", json=body)
    (finding,) = payment_sandbox.review()
    assert (finding.rule, finding.amount) == ("CTL-23", AMOUNT)


def test_a_retry_with_its_key_is_no_second_order(payment_sandbox: PaymentSandbox) -> None:
    """A creation that is sent again with its key is one order; with another key, it is a second one."""
    url = f"{payment_sandbox.base_url}/v1/orders/"
    body = {"currency": "EUR", "amount": AMOUNT, "merchant_order_id": "S-1001"}
    for key, is_second in (("one", False), ("one", False), ("two", True)):
        payment_sandbox.session.post(url, json=body, headers={"Idempotency-Key": key})
        assert ("ORD-07" in {each.rule for each in payment_sandbox.review() if each.is_open}) == is_second
