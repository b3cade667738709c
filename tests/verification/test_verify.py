"""Verdicts of verify on the sandbox itself and on servers that deviate on purpose."""

from collections.abc import Callable
from typing import Any

import pytest
import requests
from payment_sandbox_verify.checks import NotVerified
from payment_sandbox_verify.comparing import Comparison, compare, format_settings_file, report_lines
from payment_sandbox_verify.probes import all_probes
from payment_sandbox_verify.probing import RuleReport, Verdict, run_probes, sum_up

from payment_sandbox.fidelity.ledger import rules
from payment_sandbox_verify.service import SKIPPED_IN_LIVE_MODE
from payment_sandbox_verify.verifying import is_live, reference_sandbox, verify, verify_default_sandbox
from tests.verification.differing import DEVIATIONS, Deviation
from tests.verification.exchanges import Alteration, AlteringSession, Exchange

AGREEING_MIN = 295


def rules_with(verdict: Verdict) -> set[str]:
    """Return the rules with this verdict on the sandbox itself."""
    return {rule for rule, each in verify_default_sandbox().reports.items() if each.verdict is verdict}


def compare_deviation(deviation: Deviation) -> Comparison:
    """Compare a server with this deviation."""
    with reference_sandbox() as reference:
        reference.service._session = AlteringSession(deviation.before, deviation.after)
        return compare(reference.service, live=bool(is_live(reference.service)))


def test_the_sandbox_agrees_with_itself() -> None:
    """The sandbox agrees in every rule that a caller can observe; each other rule has a reason."""
    assert {
        rule: each.reason
        for rule, each in verify_default_sandbox().reports.items()
        if rule in rules_with(Verdict.DIFFERS)
    } == {}
    assert len(rules_with(Verdict.AGREES)) >= AGREEING_MIN
    assert set(verify_default_sandbox().reports) == {rule["id"] for rule in rules()}
    unknown = [verify_default_sandbox().reports[rule].reason for rule in rules_with(Verdict.UNKNOWN)]
    assert all(unknown)
    assert "the probe stopped before this check" not in unknown


COMBINATIONS = (  # independent deviations are checked on one server
    (
        *("the largest QR size is refused", "a locale is refused", "orders have another field"),
        *("a 401 has no challenge", "line details have numbers"),
    ),
    (
        *("the smallest QR size is refused", "a type of lines is refused", "transactions have another field"),
        *("times end in Z", "a part of extra is forgotten"),
    ),
    (
        *(
            "a QR minimum below the amount is refused",
            "the client is forgotten",
            "refunds have another field",
        ),
        "captured attempts stay capturable",
    ),
    (
        *("lines are forgotten", "return addresses are forgotten", "webhook addresses are forgotten"),
        *("QR amounts are cents", "cards expire after 15 minutes"),
    ),
    (
        *(
            "descriptions are read without accents",
            "transfers cannot be cancelled",
            "orders have at most 50 lines",
        ),
        *("errors have no violations", "is_capturable is missing"),
    ),
    (
        *("QR sizes are clamped", "method names ignore case", "a series may charge less"),
        "customers cannot be changed",
    ),
    (
        *("paths need their slash", "refunds are pending", "only the first event is kept"),
        *("modified never changes", "orders have no flags"),
    ),
    (
        *("countries may have three letters", "dates need no dashes", "offsets are ignored"),
        *("lists of ETags do not match", "violations lack the allowed values"),
    ),
    (
        *("pages need no lines", "inner keys are ignored silently", "a status is ignored silently"),
        *("only the last block counts", "passwords are refused", "invoices are refunded by amount"),
    ),
)


def _combine(alterations: list[Alteration]) -> Alteration:
    def apply_all(exchange: Exchange) -> None:
        for alteration in alterations:
            alteration(exchange)

    return apply_all


@pytest.mark.prove
@pytest.mark.parametrize("names", COMBINATIONS)
def test_a_server_with_several_deviations(names: tuple[str, ...]) -> None:
    """Each deviation of a server is reported as if it were the only one."""
    deviations = [DEVIATIONS[name] for name in names]
    before_alterations = [each.before for each in deviations if each.before is not None]
    after_alterations = [each.after for each in deviations if each.after is not None]
    comparison = compare_deviation(
        Deviation(
            "",
            before=_combine(before_alterations) if before_alterations else None,
            after=_combine(after_alterations),
        )
    )
    assert {each.rule for each in comparison.differing} == {
        rule for each in deviations for rule in each.rules.split()
    }
    assert comparison.settings == {}


@pytest.mark.prove  # each is verified twice, which takes a while
@pytest.mark.parametrize("name", [name for name in DEVIATIONS if name not in sum(COMBINATIONS, ())])
def test_a_server_that_differs(name: str) -> None:
    """Exactly the rules of the deviation are reported, with the settings that reproduce it."""
    deviation = DEVIATIONS[name]
    comparison = compare_deviation(deviation)
    assert sorted(each.rule for each in comparison.differing) == sorted(deviation.rules.split())
    assert comparison.settings == deviation.settings
    assert all(each.reason for each in comparison.differing)
    is_copied = bool(deviation.settings) and name != "orders cannot be cancelled"
    assert (comparison.not_copied == []) is (is_copied or not comparison.differing)
    text = format_settings_file(comparison, "differences.yaml")
    assert all(f"#   {each.rule}: " in text for each in comparison.not_copied)


def test_rules_hidden_by_a_difference_are_listed_with_it() -> None:
    """A rule that a difference prevents from being checked is listed with that difference only."""
    reports = {
        "CAP-02": RuleReport("CAP-02", Verdict.UNKNOWN, "hidden because STA-04 differs", "STA-04"),
        "STA-04": RuleReport("STA-04", Verdict.DIFFERS, "status is 'new', not 'processing'"),
    }
    assert [line.strip() for line in report_lines(reports)][-2:] == [
        "status is 'new', not 'processing'",
        "which hides CAP-02",
    ]


def test_an_account_may_have_custom_method_names() -> None:
    """Custom method names are sent in requests and written to the settings file as aliases."""
    names = {"bank-redirect-nl": "my-bank-button", "wallet-qr": "my-app"}
    with reference_sandbox({"aliases": {alias: name for name, alias in names.items()}}) as reference:
        reference.service.names = names
        comparison = compare(reference.service, live=False)
        sent = str(list(reference.client.journal()))
    assert comparison.differing == []
    assert comparison.settings == {"aliases": {"my-bank-button": "bank-redirect-nl", "my-app": "wallet-qr"}}
    assert "'my-bank-button'" in sent
    assert "/v1/my-bank-button/issuers/" in sent
    assert "'payment_method': 'bank-redirect-nl'" not in sent


WITH_WEBHOOKS = ("credit-card", "bank-transfer", "webhooks of all orders")


def webhook_differences(alter: Callable[[Any], None]) -> dict[str, str]:
    """Return the reasons of the webhook rules that differ in an altered sandbox."""
    with reference_sandbox() as reference:
        alter(reference)
        probes = [each for each in all_probes() if each.name in WITH_WEBHOOKS]
        reports = sum_up(run_probes(probes, reference.service, is_live=False))
    return {rule: each.reason for rule, each in reports.items() if each.verdict is Verdict.DIFFERS}


def _duplicate_webhooks(reference: Any) -> None:
    reference.client.call("PUT", "/control/faults/", {"webhooks": [{"then": {"duplicate": 2}}]})


def _ignore_later_webhooks(reference: Any) -> None:
    """Ignore all webhooks of an order after the first."""
    wait_for = reference.service.receiver.wait_for

    def wait_for_first(order_id: str, seconds: float, *, nth: int = 1) -> Any:
        if nth > 1:
            raise TimeoutError
        return wait_for(order_id, seconds, nth=nth)

    reference.service.receiver.wait_for = wait_for_first


def _drop_webhooks(reference: Any) -> None:
    reference.client.call("PUT", "/control/faults/", {"webhooks": [{"then": {"drop": True}}]})


@pytest.mark.parametrize(
    ("alter", "expected"),
    [
        (lambda reference: None, {}),
        (
            _duplicate_webhooks,
            {"HOOK-02": "3 webhooks arrived for 2 changes of an order with status cancelled"},
        ),
        (_ignore_later_webhooks, {"HOOK-02": "1 of 2 webhooks arrived for an order with status cancelled"}),
        (_drop_webhooks, {"HOOK-02": "0 of 2 webhooks arrived for an order with status cancelled"}),
    ],
)
def test_each_change_is_one_webhook(alter: Callable[[Any], None], expected: dict[str, str]) -> None:
    """A missing or an extra webhook is reported."""
    assert webhook_differences(alter) == expected


def _report_live_mode(exchange: Exchange) -> None:
    """Remove the test flag, as in live mode."""
    if exchange.is_order:
        exchange.data["flags"].remove("is-test")


def test_live_mode_is_detected_and_costs_nothing() -> None:
    """In live mode, probes that create invoices or move money are skipped."""
    with reference_sandbox() as reference:
        reference.service._session = AlteringSession(None, _report_live_mode)
        assert is_live(reference.service)
        verification = verify(reference.service, live=True)
        orders = reference.client.orders()
    assert verification.reports["INV-03"].reason == SKIPPED_IN_LIVE_MODE
    assert verification.reports["ORD-03"].verdict is Verdict.AGREES
    assert {order["status"] for order in orders} == {"cancelled"}
    assert verification.remaining == {}


def _record_refused_orders(exchange: Exchange) -> None:
    """Answer as in live mode, and record the orders that were refused."""
    _report_live_mode(exchange)
    if exchange.error and exchange.method == "POST" and exchange.path.rstrip("/").endswith("/orders"):
        refused_bodies.append(exchange.body)


refused_bodies: list[Any] = []


def test_live_mode_sends_no_invoices() -> None:
    """In live mode, no invoice is sent, not even an invalid one."""
    with reference_sandbox() as reference:
        reference.service._session = AlteringSession(None, _record_refused_orders)
        verification = verify(reference.service, live=True)
    assert refused_bodies
    assert "invoice-later-b" not in str(refused_bodies)
    assert verification.reports["INV-02"].reason == SKIPPED_IN_LIVE_MODE


def test_created_orders_are_cleaned_up() -> None:
    """Orders are cancelled or refunded; those with refunded money are named."""
    with reference_sandbox() as reference:
        verification = verify(reference.service, live=False)
        orders = {order["id"]: order for order in reference.client.orders(limit=1000)}
    assert verification.remaining
    for order_id, order in orders.items():
        is_finished = order["status"] in ("cancelled", "expired", "error")
        assert is_finished or order_id in verification.remaining or "is-refund" in order["flags"], order
    assert all("has-refunds" in orders[order_id]["flags"] for order_id in verification.remaining)


def _raise(error: Exception) -> Callable[..., Any]:
    def request(*arguments: Any, **options: Any) -> Any:
        raise error

    return request


def test_a_server_that_does_not_answer_is_not_verified(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that refuses the key or does not respond is not verified."""
    with reference_sandbox() as reference:
        reference.service.key = "wrong"
        with pytest.raises(NotVerified, match="refuses the key: 401 Unauthorized"):
            is_live(reference.service)
        reference.service.pause = lambda seconds: None
        monkeypatch.setattr(reference.service._session, "request", _raise(requests.ConnectionError("gone")))
        with pytest.raises(NotVerified, match="was not answered"):
            is_live(reference.service)


def test_a_failed_call_is_no_difference() -> None:
    """A probe whose call fails has no verdict."""
    with reference_sandbox() as reference:
        request = reference.service._session.request

        def fail_for_bank_qr(method: str, url: str, **options: Any) -> Any:
            if "/bankqr/" in url:
                raise requests.ConnectionError("gone")
            return request(method, url, **options)

        reference.service._session.request = fail_for_bank_qr  # type: ignore[method-assign, assignment]
        verification = verify(reference.service, live=False)
    assert verification.reports["QR-01"].verdict is Verdict.UNKNOWN
    assert "was not answered" in verification.reports["QR-01"].reason
    assert verification.count(Verdict.DIFFERS) == 0


def test_each_probe_can_read_the_responses_of_the_sandbox() -> None:
    """No probe reports an unreadable response of the sandbox."""
    with reference_sandbox() as reference:
        reports = list(run_probes(list(all_probes()), reference.service, is_live=False))
        reference.service.clean_up()
    assert [
        each for each in reports if isinstance(each, RuleReport) and "could not be read" in each.reason
    ] == []


@pytest.mark.prove
def test_a_sandbox_in_live_mode_has_no_differences() -> None:
    """Live mode is compared with a sandbox in live mode."""
    with reference_sandbox({"mode": "live"}) as reference:
        assert [each.rule for each in compare(reference.service, live=True).differing] == []


@pytest.mark.prove
def test_a_live_server_is_compared_with_a_sandbox_in_test_mode() -> None:
    """The server of --against is verified in its own mode, which may differ from the mode of the first."""
    with reference_sandbox({"mode": "live"}) as live, reference_sandbox() as test:
        comparison = compare(live.service, live=True, against=test.service)
    assert comparison.differing == []
    beside = comparison.ours.reports.values()
    assert [each.reason for each in beside if each.verdict is Verdict.DIFFERS] == []
