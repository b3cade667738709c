"""What verify finds of servers: of the sandbox itself, and of servers that differ on purpose."""

from collections.abc import Callable
from typing import Any

import pytest
import requests

from payment_sandbox.fidelity.ledger import rules
from payment_sandbox_verify.checks import NotVerified
from payment_sandbox_verify.comparing import Comparison, compare, format_settings_file, report_lines
from payment_sandbox_verify.probes import all_probes
from payment_sandbox_verify.probing import RuleReport, Verdict, run_probes, sum_up
from payment_sandbox_verify.service import SKIPPED_IN_LIVE_MODE
from payment_sandbox_verify.verifying import is_live, reference_sandbox, verify, verify_default_sandbox
from tests.verification.differing import DIFFERENT, Different
from tests.verification.exchanges import DifferingSession, Exchange, Way

ASKED_MIN = 295


def told(verdict: Verdict) -> set[str]:
    """The rules with a verdict on the sandbox itself."""
    return {rule for rule, each in verify_default_sandbox().reports.items() if each.verdict is verdict}


def compared(different: Different) -> Comparison:
    """What verify says about a server that differs."""
    with reference_sandbox() as own:
        own.service._session = DifferingSession(different.before, different.after)
        return compare(own.service, live=bool(is_live(own.service)))


def test_the_sandbox_agrees_with_itself() -> None:
    """In every rule that a caller can show; all the others have a reason."""
    assert {
        rule: each.reason
        for rule, each in verify_default_sandbox().reports.items()
        if rule in told(Verdict.DIFFERS)
    } == {}
    assert len(told(Verdict.AGREES)) >= ASKED_MIN
    assert set(verify_default_sandbox().reports) == {rule["id"] for rule in rules()}
    unknown = [verify_default_sandbox().reports[rule].reason for rule in told(Verdict.UNKNOWN)]
    assert all(unknown)
    assert "the probe stopped before this check" not in unknown


TOGETHER = (  # what has nothing to do with each other is noticed at one server
    (
        *("the largest QR size is refused", "a locale is refused", "orders have another field"),
        *("a 401 has no challenge", "line details have numbers"),
    ),
    (
        *("the smallest QR size is refused", "a type of lines is refused", "transactions have another field"),
        *("times end in Z", "extra is forgotten in part"),
    ),
    (
        *("a QR bound of one cent less is refused", "the client is forgotten", "refunds have another field"),
        "what is captured stays capturable",
    ),
    (
        *("lines are forgotten", "return addresses are forgotten", "webhook addresses are forgotten"),
        *("QR amounts are cents", "cards expire after a quarter"),
    ),
    (
        *("descriptions are read without accents", "transfers cannot be cancelled", "orders have few lines"),
        *("errors have no violations", "nothing says what is capturable"),
    ),
    (
        *("QR sizes are clamped", "methods have names in any case", "a series may charge less"),
        "customers cannot be changed",
    ),
    (
        *("paths need their slash", "refunds are pending", "only the first event stays"),
        *("modified never moves", "orders have no flags"),
    ),
    (
        *("countries may have three letters", "dates need no dashes", "offsets do not count"),
        *("lists of tags do not match", "violations do not say what is allowed"),
    ),
    (
        *("pages need no lines", "inner keys are ignored silently", "a status is ignored silently"),
        *("only the last block counts", "passwords are refused", "invoices are refunded by amount"),
    ),
)


def _all(ways: list[Way]) -> Way:
    """One way that is all of them."""

    def go(exchange: Exchange) -> None:
        for way in ways:
            way(exchange)

    return go


@pytest.mark.prove
@pytest.mark.parametrize("names", TOGETHER)
def test_a_server_that_differs_in_several_ways(names: tuple[str, ...]) -> None:
    """Each of its differences is named as if it were the only one."""
    ways = [DIFFERENT[name] for name in names]
    befores = [each.before for each in ways if each.before is not None]
    afters = [each.after for each in ways if each.after is not None]
    found = compared(Different("", before=_all(befores) if befores else None, after=_all(afters)))
    assert {each.rule for each in found.differing} == {rule for each in ways for rule in each.rules.split()}
    assert found.settings == {}


@pytest.mark.prove  # each is verified twice, which takes a while
@pytest.mark.parametrize("name", [name for name in DIFFERENT if name not in sum(TOGETHER, ())])
def test_a_server_that_differs(name: str) -> None:
    """Exactly its differences are found, and settings copy those that settings can copy."""
    different = DIFFERENT[name]
    found = compared(different)
    assert sorted(each.rule for each in found.differing) == sorted(different.rules.split())
    assert found.settings == different.settings
    assert all(each.reason for each in found.differing)
    is_copied = bool(different.settings) and name != "orders cannot be cancelled"
    assert (found.not_copied == []) is (is_copied or not found.differing)
    text = format_settings_file(found, "differences.yaml")
    assert all(f"#   {each.rule}: " in text for each in found.not_copied)


def test_what_a_difference_hides_is_listed_under_it() -> None:
    """Of a rule that could not be asked about for this reason, nothing is said but that."""
    reports = {
        "CAP-02": RuleReport("CAP-02", Verdict.UNKNOWN, "hidden because STA-04 differs", "STA-04"),
        "STA-04": RuleReport("STA-04", Verdict.DIFFERS, "status is 'new', not 'processing'"),
    }
    assert [line.strip() for line in report_lines(reports)][-2:] == [
        "status is 'new', not 'processing'",
        "which hides CAP-02",
    ]


def test_an_account_may_have_its_own_names_of_methods() -> None:
    """They are sent, and the file has them as aliases."""
    names = {"bank-redirect-nl": "my-bank-button", "wallet-qr": "my-app"}
    with reference_sandbox({"aliases": {theirs: name for name, theirs in names.items()}}) as own:
        own.service.names = names
        found = compare(own.service, live=False)
        sent = str(list(own.client.journal()))
    assert found.differing == []
    assert found.settings == {"aliases": {"my-bank-button": "bank-redirect-nl", "my-app": "wallet-qr"}}
    assert "'my-bank-button'" in sent
    assert "/v1/my-bank-button/issuers/" in sent
    assert "'payment_method': 'bank-redirect-nl'" not in sent


WITH_WEBHOOKS = ("credit-card", "bank-transfer", "webhooks of all orders")


def told_of_webhooks(alter: Callable[[Any], None]) -> dict[str, str]:
    """The rules of webhooks that differ at a server whose sandbox, or shop, is altered; and how."""
    with reference_sandbox() as own:
        alter(own)
        probes = [each for each in all_probes() if each.name in WITH_WEBHOOKS]
        told = sum_up(run_probes(probes, own.service, is_live=False))
    return {rule: each.reason for rule, each in told.items() if each.verdict is Verdict.DIFFERS}


def _each_twice(own: Any) -> None:
    own.client.call("PUT", "/control/faults/", {"webhooks": [{"then": {"duplicate": 2}}]})


def _first_only(own: Any) -> None:
    """A shop that hears the first webhook of an order only."""
    wait_for = own.service.receiver.wait_for

    def first(order_id: str, seconds: float, *, nth: int = 1) -> Any:
        if nth > 1:
            raise TimeoutError
        return wait_for(order_id, seconds, nth=nth)

    own.service.receiver.wait_for = first


def _none(own: Any) -> None:
    """A server that sends no webhooks."""
    own.client.call("PUT", "/control/faults/", {"webhooks": [{"then": {"drop": True}}]})


@pytest.mark.parametrize(
    ("alter", "expected"),
    [
        (lambda own: None, {}),
        (_each_twice, {"HOOK-02": "3 webhooks arrived for 2 changes of an order with status cancelled"}),
        (_first_only, {"HOOK-02": "1 of 2 webhooks arrived for an order with status cancelled"}),
        (_none, {"HOOK-02": "0 of 2 webhooks arrived for an order with status cancelled"}),
    ],
)
def test_each_change_is_one_webhook(alter: Callable[[Any], None], expected: dict[str, str]) -> None:
    """One too many or too few is told."""
    assert told_of_webhooks(alter) == expected


def _live(exchange: Exchange) -> None:
    """Answer like an account in live mode."""
    if exchange.is_order:
        exchange.data["flags"].remove("is-test")


def test_live_mode_is_noticed_and_costs_nothing() -> None:
    """With --yes-live, what makes invoices or moves money is left out."""
    with reference_sandbox() as own:
        own.service._session = DifferingSession(None, _live)
        assert is_live(own.service)
        found = verify(own.service, live=True)
        orders = own.client.orders()
    assert found.reports["INV-03"].reason == SKIPPED_IN_LIVE_MODE
    assert found.reports["ORD-03"].verdict is Verdict.AGREES
    assert {order["status"] for order in orders} == {"cancelled"}
    assert found.remaining == {}


def _takes_everything(exchange: Exchange) -> None:
    """A live account that also accepts what it should refuse."""
    _live(exchange)
    if exchange.error and exchange.method == "POST" and exchange.path.rstrip("/").endswith("/orders"):
        sent.append(exchange.sent)


sent: list[Any] = []


def test_live_mode_sends_nothing_that_would_cost_if_it_were_accepted() -> None:
    """No invoice, not even one that has to be refused."""
    with reference_sandbox() as own:
        own.service._session = DifferingSession(None, _takes_everything)
        found = verify(own.service, live=True)
    assert sent
    assert "invoice-later-b" not in str(sent)
    assert found.reports["INV-02"].reason == SKIPPED_IN_LIVE_MODE


def test_what_is_made_is_taken_back() -> None:
    """Orders are cancelled; where money has moved, it is refunded, and the order is named."""
    with reference_sandbox() as own:
        found = verify(own.service, live=False)
        orders = {order["id"]: order for order in own.client.orders(limit=1000)}
    assert found.remaining
    for order_id, order in orders.items():
        is_over = order["status"] in ("cancelled", "expired", "error")
        assert is_over or order_id in found.remaining or "is-refund" in order["flags"], order
    assert all("has-refunds" in orders[order_id]["flags"] for order_id in found.remaining)


def _failing(error: Exception) -> Callable[..., Any]:
    def request(*arguments: Any, **options: Any) -> Any:
        raise error

    return request


def test_a_server_that_does_not_answer_is_not_verified(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor is one that refuses the key, or one that is something else."""
    with reference_sandbox() as own:
        own.service.key = "wrong"
        with pytest.raises(NotVerified, match="refuses the key: 401 Unauthorized"):
            is_live(own.service)
        own.service.pause = lambda seconds: None
        monkeypatch.setattr(own.service._session, "request", _failing(requests.ConnectionError("gone")))
        with pytest.raises(NotVerified, match="was not answered"):
            is_live(own.service)


def test_an_answer_that_fails_in_between_is_no_difference() -> None:
    """A probe whose call gets no answer could not tell."""
    with reference_sandbox() as own:
        request = own.service._session.request

        def sometimes(method: str, url: str, **options: Any) -> Any:
            if "/bankqr/" in url:
                raise requests.ConnectionError("gone")
            return request(method, url, **options)

        own.service._session.request = sometimes  # type: ignore[method-assign, assignment]
        found = verify(own.service, live=False)
    assert found.reports["QR-01"].verdict is Verdict.UNKNOWN
    assert "was not answered" in found.reports["QR-01"].reason
    assert found.count(Verdict.DIFFERS) == 0


def test_each_probe_can_read_what_the_sandbox_answers() -> None:
    """One that falls over an answer would tell nothing of any server."""
    with reference_sandbox() as own:
        found = list(run_probes(list(all_probes()), own.service, is_live=False))
        own.service.clean_up()
    assert [
        each for each in found if isinstance(each, RuleReport) and "could not be read" in each.reason
    ] == []
