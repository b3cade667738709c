"""Verdicts of verify on the sandbox itself and on servers that deviate on purpose."""

from collections.abc import Callable, Iterator, Sequence
from io import BytesIO
from queue import SimpleQueue
from typing import Any

import pytest
import requests

from payment_sandbox.fidelity.ledger import rules
from payment_sandbox_verify.comparing import compare_scene
from payment_sandbox_verify.inbox import Inbox, Received
from payment_sandbox_verify.player import (
    NEEDS_PATIENCE,
    SKIPPED_IN_LIVE_MODE,
    SLOW_WEBHOOKS_MAX,
    Played,
    SandboxPlayer,
)
from payment_sandbox_verify.reporting import Comparison, compare, format_settings_file, report_lines
from payment_sandbox_verify.steps import ConversationScene
from payment_sandbox_verify.verifying import (
    RuleReport,
    Verdict,
    VerificationResult,
    is_live,
    reference_sandbox,
    summarize,
    verify,
)
from tests.verification.differing import DEVIATIONS, Deviation
from tests.verification.exchanges import AlteringSession, Exchange
from tests.verification.scenes import SCENES, scenes_about, scenes_called, scenes_named

AGREEING_MIN = 305


@pytest.fixture(scope="module")
def own() -> VerificationResult:
    """The verification of the sandbox itself."""
    with reference_sandbox() as reference:
        return verify(reference, {}, live=False)


@pytest.mark.prove
def test_the_sandbox_agrees_with_itself(own: VerificationResult) -> None:
    """The sandbox agrees in every rule that a caller can observe; each other rule has a reason."""
    differing = {rule: each.reason for rule, each in own.reports.items() if each.verdict is Verdict.DIFFERS}
    assert differing == {}
    assert own.count(Verdict.AGREES) >= AGREEING_MIN
    assert set(own.reports) == {rule["id"] for rule in rules()}
    unknown = [each.reason for each in own.reports.values() if each.verdict is Verdict.UNKNOWN]
    assert all(unknown)
    assert "no step of the conversation shows this rule" not in unknown


@pytest.mark.prove
def test_created_orders_are_cleaned_up() -> None:
    """Orders are cancelled or refunded; those with refunded money are named."""
    scenes = scenes_named("paid", "invoice-later-b", "one-click", "new ", "expired")
    with reference_sandbox() as reference:
        verification = verify(reference, {}, live=False, scenes=scenes)
        orders = {order["id"]: order for order in reference.control.orders(limit=1000)}
    assert verification.remaining
    for order_id, order in orders.items():
        is_finished = order["status"] in ("cancelled", "expired", "error")
        assert is_finished or order_id in verification.remaining or "is-refund" in order["flags"], order


@pytest.fixture(scope="module")
def reference_play() -> Iterator[Callable[[ConversationScene], Played]]:
    """Play a scene on a sandbox, once for all deviations."""
    plays: dict[str, Played] = {}
    with reference_sandbox() as reference:

        def play(scene: ConversationScene) -> Played:
            if scene.name not in plays:
                plays[scene.name] = reference.play(scene)
            return plays[scene.name]

        yield play


def differences(
    reference_play: Callable[[ConversationScene], Played],
    scenes: Sequence[ConversationScene],
    *deviations: Deviation,
) -> dict[str, str]:
    """Return the rules in which a server with these deviations differs, and the reasons."""

    def before(exchange: Exchange) -> None:
        for each in deviations:
            if each.before is not None:
                each.before(exchange)

    def after(exchange: Exchange) -> None:
        for each in deviations:
            if each.after is not None:
                each.after(exchange)

    ours = list(map(reference_play, scenes))
    with reference_sandbox() as reference:
        reference.service._session = AlteringSession(before, after)
        theirs = [reference.play(scene, beside) for scene, beside in zip(scenes, ours, strict=True)]
        theirs = [reference.with_late_webhooks(played) for played in theirs]
    reports = summarize(map(compare_scene, theirs, ours)).reports
    return {rule: each.reason for rule, each in reports.items() if each.verdict is Verdict.DIFFERS}


@pytest.mark.parametrize("name", DEVIATIONS)
def test_a_deviation_has_its_own_rules_and_words(
    name: str, reference_play: Callable[[ConversationScene], Played]
) -> None:
    """A deviation is reported under its rules and no others, in words that say which call differs in what."""
    deviation = DEVIATIONS[name]
    named = deviation.scenes
    scenes = scenes_called(*named.split(" | ")) if named else scenes_about(deviation.rules)
    differing = differences(reference_play, scenes, deviation)
    assert sorted(differing) == sorted(deviation.rules.split()), differing
    assert all(differing.values())
    assert deviation.words in "; ".join(differing.values())


TOGETHER = ("offsets are ignored", "orders have another field", "transactions have another field",
            "a 401 has no challenge", "line details have numbers")  # fmt: skip


@pytest.mark.prove
@pytest.mark.timeout(900)  # it plays the whole conversation three times
def test_several_deviations_in_the_whole_conversation(own: VerificationResult) -> None:
    """Each deviation of a server is reported under its own rule, as if it were the only one."""
    ours = {scene.name: played for scene, (_, played) in zip(SCENES, own.pairs, strict=True)}
    deviations = [DEVIATIONS[name] for name in TOGETHER]
    differing = differences(lambda scene: ours[scene.name], SCENES, *deviations)
    assert sorted(differing) == sorted({rule for each in deviations for rule in each.rules.split()})


def test_a_difference_that_no_setting_copies_is_named_in_the_file() -> None:
    """The file of settings ends with the differences that remain."""
    with reference_sandbox() as reference:
        reference.service._session = AlteringSession(None, DEVIATIONS["times end in Z"].after)
        comparison = compare(reference, live=False, scenes=scenes_named("conditions"))
    assert comparison.settings == {}
    text = format_settings_file(comparison, "differences.yaml")
    assert "#   SET-19: " in text


PAGE_RULES = ("FLOW-03", "QR-13", "WQR-01")
REPORTS = {
    **{rule: RuleReport(rule, Verdict.UNKNOWN, ["needs a person to scan a code"]) for rule in PAGE_RULES},
    "CAP-02": RuleReport("CAP-02", Verdict.UNKNOWN, ["hidden because STA-04 differs"], "STA-04"),
    "STA-04": RuleReport("STA-04", Verdict.DIFFERS, ["a read, GET /v1/: status is 'new', expected 'paid'"]),
}


def report_on(reports: dict[str, RuleReport], **options: Any) -> list[str]:
    """Return the report on a server with these verdicts."""
    result = VerificationResult(reports, [], call_count=7)
    return list(report_lines(Comparison("https://api.example", result, {}, []), **options))


def test_a_report_begins_with_its_verdict() -> None:
    """The verdict, the numbers and the advice come first, then each difference, then the causes in groups."""
    assert report_on(REPORTS) == [
        "differs: https://api.example differs from the sandbox",
        "0 rules agree, 1 differ, 4 could not be compared (7 calls)",
        "Settings reproduce 1 of 1: --differences differences.yaml writes them to a file.",
        "",
        "STA-04: a read, GET /v1/: status is 'new', expected 'paid'",
        "  The rule: credit-card: visit of payment_url makes it processing (rules not compared because of this: 1)",
        "",
        "Not compared (--by-rule lists each rule):",
        "   3 rules: needs a person to scan a code",
        "",
        "All created orders are cleaned up.",
    ]
    assert "could not tell: QR-13: one_off true: usable once" in "\n".join(report_on(REPORTS, by_rule=True))


def test_a_report_without_differences_fits_on_a_screen() -> None:
    """Whatever the reasons are, what agrees and what could not be compared takes 40 lines at most."""
    known = [rule["id"] for rule in rules()]
    reports = {rule: RuleReport(rule, Verdict.UNKNOWN, [f"cause {rule}"]) for rule in known}
    lines = report_on(reports)
    assert lines[0] == "could not tell: https://api.example could not be compared with the sandbox"
    assert len(lines) <= 40
    assert sum(int(line.split()[0]) for line in lines if " rule" in line and line[0] == " ") == len(known)
    agreeing = report_on({rule: RuleReport(rule, Verdict.AGREES) for rule in known})
    assert agreeing[0] == "agrees: https://api.example answers like the sandbox"
    assert agreeing[1].startswith(f"{len(known)} rules agree, 0 differ, 0 could not be compared")


def test_an_account_may_have_custom_method_names() -> None:
    """Custom method names are sent in requests and written to the settings file as aliases."""
    names = {"bank-redirect-nl": "my-bank-button", "wallet-qr": "my-app"}
    aliases = {alias: name for name, alias in names.items()}
    with reference_sandbox({"aliases": aliases}) as reference:
        reference.service.names = names
        scenes = scenes_named("lists", "banks", "new bank-redirect-nl", "new wallet-qr", "methods with")
        comparison = compare(reference, live=False, scenes=scenes)
        sent = str(list(reference.control.journal()))
    assert comparison.differing == []
    assert comparison.settings == {"aliases": aliases}
    assert "'my-bank-button'" in sent
    assert "/v1/my-bank-button/issuers/" in sent
    assert "'payment_method': 'bank-redirect-nl'" not in sent


def webhook_differences(alter: Callable[[SandboxPlayer], None]) -> dict[str, str]:
    """Return the reasons of the rules that differ in a sandbox with altered webhooks."""
    with reference_sandbox() as reference:
        alter(reference)
        reports = verify(reference, {}, live=False, scenes=scenes_named("wallet-web given up")).reports
    return {rule: each.reason for rule, each in reports.items() if each.verdict is Verdict.DIFFERS}


def set_fault(then: dict[str, Any]) -> Callable[[SandboxPlayer], None]:
    """Return an alteration of all webhooks."""

    def alter(reference: SandboxPlayer) -> None:
        reference.control.call("PUT", "/control/faults/", {"webhooks": [{"then": then}]})
        reference._slow_count = SLOW_WEBHOOKS_MAX  # so it waits for a second

    return alter


def receive_as(**changes: Any) -> Callable[[SandboxPlayer], None]:
    """Return an alteration of webhooks on their way."""

    def alter(reference: SandboxPlayer) -> None:
        inbox = reference.inbox
        assert isinstance(inbox, Inbox)
        record = inbox.record
        inbox.record = lambda received: record(received._replace(**changes))  # type: ignore[method-assign, assignment]

    return alter


def _keep(reference: SandboxPlayer) -> None:
    """Alter nothing."""


def _delay_the_last(reference: SandboxPlayer) -> None:
    """Let the last webhook arrive after the conversation, and nobody wait for it."""
    inbox, with_late_webhooks = reference.inbox, reference.with_late_webhooks
    assert isinstance(inbox, Inbox)
    record, delayed = inbox.record, SimpleQueue[Received]()

    def receive(received: Received) -> None:
        delayed.put(received) if inbox.received else record(received)

    def arrive_late(played: Played) -> Played:
        record(delayed.get(timeout=60))
        return with_late_webhooks(played)

    inbox.record = receive  # type: ignore[method-assign, assignment]
    reference.expected_webhooks = lambda *_: 1  # type: ignore[method-assign]
    reference.with_late_webhooks = arrive_late  # type: ignore[method-assign]


def _repeat_later(reference: SandboxPlayer) -> None:
    """Send the first webhook again when the orders are cleaned up, after the conversation."""
    inbox, with_late_webhooks = reference.inbox, reference.with_late_webhooks
    assert isinstance(inbox, Inbox)

    def repeat(played: Played) -> Played:
        inbox.record(inbox.received[0])
        return with_late_webhooks(played)

    reference.with_late_webhooks = repeat  # type: ignore[method-assign]


@pytest.mark.parametrize(
    ("alter", "rule", "words"),
    [
        (_keep, "", ""),
        (_delay_the_last, "", ""),
        (_repeat_later, "HOOK-02", "3 webhooks arrived, expected 2"),
        (set_fault({"drop": True}), "HOOK-02", "0 webhooks arrived, expected 2"),
        (receive_as(method="PUT"), "HOOK-01", "the webhook's method is 'PUT', expected 'POST'"),
        (
            receive_as(media_type="text/plain"),
            "HOOK-01",
            "media type is 'text/plain', expected 'application/json'",
        ),
        (receive_as(has_authorization=True), "AUTH-03", "authorization is True, expected False"),
        (receive_as(data={"event": "changed"}), "HOOK-05", "the webhook's event is 'changed'"),
        (receive_as(data={"event": "status_changed"}), "HOOK-06", "the webhook's order_id is missing"),
        (receive_as(data=None), "HOOK-08", "the webhook's body is None"),
    ],
)
def test_each_change_is_one_webhook(alter: Callable[[SandboxPlayer], None], rule: str, words: str) -> None:
    """A missing, an additional or a late webhook, and one of another form, is reported in its own words."""
    differences = webhook_differences(alter)
    assert list(differences) == ([rule] if rule else [])
    assert words in "".join(differences.values())


def _report_live_mode(exchange: Exchange) -> None:
    """Remove the test flag, as in live mode."""
    if exchange.is_order:
        exchange.data["flags"].remove("is-test")


LIVE_SCENES = ("order: ", "new ", "paid", "invoice", "allow lists", "expired orders")


def test_live_mode_is_detected_and_costs_nothing() -> None:
    """In live mode, scenes that create invoices or move money are skipped, and no invoice is sent."""
    with reference_sandbox() as reference:
        reference.service._session = AlteringSession(None, _report_live_mode)
        assert is_live(reference.service)
        verification = verify(reference, {}, live=True, scenes=scenes_named(*LIVE_SCENES))
        orders = reference.control.orders(limit=1000)
        sent = [entry for entry in reference.control.journal() if entry["method"] == "POST"]
    assert verification.reports["INV-03"].reason == SKIPPED_IN_LIVE_MODE
    assert {order["status"] for order in orders} <= {"cancelled", "expired"}
    assert "invoice-later-b" not in str([entry["request"] for entry in sent])
    assert verification.remaining == {}


def test_a_failed_call_is_no_difference() -> None:
    """A call that gets no answer has no verdict."""
    with reference_sandbox() as reference:
        request = reference.service._session.request

        def fail_for_bank_qr(method: str, url: str, **options: Any) -> Any:
            if "/bankqr/" in url:
                raise requests.ConnectionError("gone")
            return request(method, url, **options)

        reference.service._session.request = fail_for_bank_qr  # type: ignore[method-assign, assignment]
        verification = verify(reference, {}, live=False, scenes=scenes_named("lists", "QR requests"))
    assert verification.reports["QR-01"].verdict is Verdict.UNKNOWN
    assert "was not answered" in verification.reports["QR-01"].reason
    assert verification.count(Verdict.DIFFERS) == 0


def test_a_busy_server_and_a_lost_answer_are_no_difference() -> None:
    """verify repeats calls that return 429, 502, 503 or 504, that fail, or that only lost their answer."""
    with reference_sandbox() as reference:
        request, count = reference.service._session.request, iter(range(10**9))

        def fail_sometimes(method: str, url: str, **options: Any) -> Any:
            number = next(count) if "/v1/" in url else 0
            if number % 7 == 3:
                raise requests.ConnectionError("gone")
            if number % 6 == 2:
                busy = requests.Response()
                busy.status_code, busy.raw = (429, 502, 503, 504)[number // 6 % 4], BytesIO()
                return busy
            response = request(method, url, **options)
            if method in ("POST", "DELETE") and number % 5 == 4:
                response.close()
                raise requests.ConnectionError("gone")
            return response

        reference.service._session.request = fail_sometimes  # type: ignore[method-assign, assignment]
        scenes = scenes_named("credit-card authorization, captured", "credit-card, paid", "conditions")
        verification = verify(reference, {}, live=False, scenes=scenes)
    differing = {
        rule: each.reason for rule, each in verification.reports.items() if each.verdict is Verdict.DIFFERS
    }
    assert reference.service.retry_count > 20
    assert differing == {}


@pytest.mark.prove
def test_a_sandbox_in_live_mode_has_no_differences() -> None:
    """Live mode is compared with a sandbox in live mode."""
    with reference_sandbox({"mode": "live"}) as reference:
        comparison = compare(reference, live=True)
    assert [each.rule for each in comparison.differing] == []
    assert comparison.settings == {"mode": "live"}


def test_methods_and_features_of_an_account_are_settings_and_no_differences() -> None:
    """The sandbox beside the server gets the account's methods and features."""
    settings = {"payment_methods": ["credit-card", "wallet-web"], "one_click_enabled": False}
    with reference_sandbox(settings) as reference:
        scenes = scenes_named("lists", "allow lists", "card: ", "one-click", "methods with")
        comparison = compare(reference, live=False, scenes=scenes)
    assert comparison.differing == []
    assert comparison.settings == settings


PATIENT_SCENES = [scene for scene in SCENES if scene.is_patient]
QUICK_SCENES = [scene for scene in PATIENT_SCENES if "late" not in scene.name]  # quick in real time, too
RETRY_RULES = {
    rule for scene in PATIENT_SCENES for step in scene.steps for rule in step.rules.split() if "HOOK" in rule
}


def retry_differences(*faults: dict[str, Any]) -> dict[str, str]:
    """Return the differences of a sandbox with these webhook faults in a patient run."""
    with reference_sandbox() as reference:
        reference.control.call("PUT", "/control/faults/", {"webhooks": list(faults)})
        reference.is_patient = True
        reports = verify(reference, {}, live=False, scenes=QUICK_SCENES).reports
    return {rule: each.reason for rule, each in reports.items() if each.verdict is Verdict.DIFFERS}


@pytest.mark.prove
def test_the_sandbox_agrees_with_itself_about_retries() -> None:
    """The sandbox agrees in all rules about retries."""
    with reference_sandbox() as reference:
        reference.is_patient = True
        reports = verify(reference, {}, live=False, scenes=PATIENT_SCENES).reports
    assert RETRY_RULES | {"SET-57", "SET-58", "LIM-06"} <= {
        rule for rule, each in reports.items() if each.verdict is Verdict.AGREES
    }


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ({"when": {"attempt": 3}, "then": {"drop": True}}, "2 webhooks arrived, expected 10"),
        ({"when": {"attempt": 6}, "then": {"drop": True}}, "5 webhooks arrived, expected 10"),
        (
            {"when": {"attempt": 4}, "then": {"delay": "PT25S"}},
            "the webhook's after is 145 s, expected 120 s",
        ),
    ],
)
def test_a_server_that_retries_differently(fault: dict[str, Any], words: str) -> None:
    """A deviation in retries is reported with the observed behaviour."""
    found = retry_differences(fault)
    assert words in "".join(found.values())
    assert found.keys() <= {"HOOK-11", "HOOK-12"}


def test_an_impatient_run_names_the_missing_options() -> None:
    """Without --patient, the rules about retries are not checked, and the reason names the options."""
    with reference_sandbox() as reference:
        reports = verify(reference, {}, live=False, scenes=PATIENT_SCENES).reports
    assert {reports[rule].reason for rule in ("HOOK-09", "HOOK-12", "SET-57", "SET-58")} == {NEEDS_PATIENCE}
