"""Recorded traffic of a service, compared with the sandbox."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from payment_sandbox.client.receiver import WebhookReceiver
from payment_sandbox_verify.recorded import compare_recording, read_har
from payment_sandbox_verify.recording import RecordingRefused
from payment_sandbox_verify.reporting import Comparison
from payment_sandbox_verify.verifying import Verdict
from tests.verification.differing import DEVIATIONS
from tests.verification.exchanges import AlteringSession
from tests.verification.recording import Change, Recorder, play_careful_shop, record_har


def compare_recorded_day(tmp_path: Path, change: Change | None = None) -> Comparison:
    """Compare a shop's recorded day with the sandbox."""
    return compare_recording(read_har(record_har(tmp_path / "shop.har", change)), "shop.har")


def test_the_sandbox_returns_the_recorded_responses(tmp_path: Path) -> None:
    """Customers in the sandbox pay, cancel and stay away as the recorded responses imply."""
    comparison = compare_recorded_day(tmp_path)
    assert {each.rule: each.reason for each in comparison.differing} == {}
    assert comparison.skipped == ()
    agreed = {rule for rule, each in comparison.theirs.reports.items() if each.verdict is Verdict.AGREES}
    assert {
        "END-02",
        "END-03",
        "END-07",
        "END-10",
        "END-13",
        "END-18",
        "ORD-03",
        "SET-49",
        "STA-17",
    } <= agreed
    assert len(agreed) >= 40
    assert comparison.theirs.reports["CARD-21"].reason == "no recorded call covers this rule"


def test_an_untouched_recording_has_no_difference(tmp_path: Path) -> None:
    """Calls are repeated with their conditions, keys and bodies; actions follow from later responses."""
    comparison = compare_recording(
        read_har(record_har(tmp_path / "shop.har", play=play_careful_shop)), "shop.har"
    )
    assert {each.rule: each.reason for each in comparison.differing} == {}
    assert comparison.skipped == ()


def _add_hostile_values(entry: Any) -> None:
    entry["request"]["headers"] = [
        {"name": "If-Match", "value": "a\r\nb"},
        {"name": "Content-Type", "value": 5},
        {"name": "Idempotency-Key", "value": "é"},
    ]
    if "transactions" in entry["data"]:
        entry["data"]["transactions"] = [5, {"id": "x"}, {"id": ["y"], "payment_method": {}}]


def test_a_hostile_recording_is_compared(tmp_path: Path) -> None:
    """Headers that cannot be sent are dropped, and malformed transactions are ignored."""
    differing = compare_recorded_day(tmp_path, _add_hostile_values).differing
    assert [each.rule for each in differing] == ["SET-09"], "the media type is a number"


@pytest.mark.parametrize(
    ("name", "settings", "rules"),
    [
        ("orders have another field", {}, ["END-02"]),
        ("refunds are pending", {}, ["SET-48"]),
        ("", {"absolute_urls": True}, ["ORD-24", "TX-12"]),
        ("", {"errors": {"ValidationError": {"status": 422, "type": "InvalidRequest"}}}, ["SET-08"]),
    ],
)
def test_a_service_that_differs(
    tmp_path: Path, name: str, settings: dict[str, Any], rules: list[str]
) -> None:
    """Each difference is reported with its calls, and reproduced by a setting if one exists."""
    session = AlteringSession(None, DEVIATIONS[name].after) if name else None
    file = record_har(tmp_path / "shop.har", session=session, **settings)
    comparison = compare_recording(read_har(file), "shop.har")
    assert [each.rule for each in comparison.differing] == rules
    assert all(" /v1/" in each.reason for each in comparison.differing)
    assert comparison.settings == settings
    assert (comparison.not_copied == []) is bool(settings)


def test_names_banks_and_addresses_of_the_real_service(tmp_path: Path) -> None:
    """Method names are translated, banks are chosen again, and no webhook is sent to the real shop."""
    receiver = WebhookReceiver()

    def play(recorder: Recorder) -> None:
        details = {"issuer_id": recorder.call("GET", "/v1/bank-redirect-nl/issuers/")[0]["id"]}
        bank = {"payment_method": "bank-redirect-nl", "payment_method_details": details}
        order = {"currency": "EUR", "amount": 1000, "webhook_url": receiver.url, "transactions": [bank]}
        created = recorder.call("POST", "/v1/orders/", order)
        recorder.act(created, "customer", "pay")
        recorder.call("GET", f"/v1/orders/{created['id']}/")
        receiver.wait_for(created["id"], nth=2)  # processing and completed; no other webhook follows

    file = record_har(tmp_path / "shop.har", play=play)
    webhook_count = len(receiver.received)
    text = file.read_text(encoding="utf-8").replace("bank-redirect-nl", "my-bank-button")
    issuer = re.search(r"SBX[A-Z0-9]+", text)
    assert issuer is not None
    entries = json.loads(text.replace(issuer[0], "REALNL2A"))
    entries["log"]["entries"] = [
        entry for entry in entries["log"]["entries"] if "issuers" not in entry["request"]["url"]
    ]
    file.write_text(json.dumps(entries), encoding="utf-8")
    names = {"bank-redirect-nl": "my-bank-button"}
    comparison = compare_recording(read_har(file, names), "shop.har", names)
    assert {each.rule: each.reason for each in comparison.differing} == {}
    assert comparison.settings == {"aliases": {"my-bank-button": "bank-redirect-nl"}}
    assert compare_recording(read_har(file), "shop.har").differing
    assert len(receiver.received) == webhook_count, "a webhook was sent to the real shop"
    receiver.close()


def test_orders_from_before_the_recording_are_skipped(tmp_path: Path) -> None:
    """Calls about an order from before the recording are skipped, and the report names the order."""

    def play(recorder: Recorder) -> None:
        order = recorder.call("POST", "/v1/orders/", {"currency": "EUR", "amount": 1000})
        recorder.entries.clear()
        recorder.call("GET", f"/v1/orders/{order['id']}/")
        recorder.call("POST", "/v1/orders/", {"currency": "EUR", "amount": 1000})

    comparison = compare_recording(read_har(record_har(tmp_path / "shop.har", play=play)), "shop.har")
    assert len(comparison.skipped) == 1
    assert comparison.skipped[0].endswith("was created before the recording")
    assert comparison.differing == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "line 1, column 2: this is not JSON"),
        ("[]", "the file has no log.entries, so it is not a HAR file"),
        ('{"log": {"entries": []}}', "none of the 0 entries calls a path that begins with /v1/"),
        ('{"log": {"entries": [{"request": {}}]}}', r"log.entries\[0\] is malformed: KeyError 'response'"),
        ('{"log": {"entries": [7]}}', r"log.entries\[0\] is malformed"),
        ('{"log": 7}', "the file has no log.entries"),
        (
            '{"log": {"entries": [{"request": {"method": 5}, "response": {}}]}}',
            "the method 5 is not a string",
        ),
        ("[" * 200_000, "nested too deeply"),
    ],
)
def test_an_invalid_recording_is_refused(tmp_path: Path, text: str, words: str) -> None:
    """A file that is no HAR recording is refused with the position of the problem."""
    file = tmp_path / "shop.har"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(RecordingRefused, match=words):
        read_har(file)


def test_entries_without_a_response_and_other_pages_are_skipped(tmp_path: Path) -> None:
    """Only API calls with a response are compared; a URL may have a prefix before /v1/."""
    file = record_har(tmp_path / "shop.har")
    document = json.loads(file.read_text(encoding="utf-8"))
    entries = document["log"]["entries"]
    count = len(entries)
    for entry in entries:
        entry["request"]["url"] = entry["request"]["url"].replace("/v1/", "/gateway/v1/")
    entries.append({**entries[0], "response": {"status": 0}})
    entries.append({**entries[0], "request": {"method": "GET", "url": "https://shop.example/basket"}})
    file.write_text(json.dumps(document), encoding="utf-8")
    recording = read_har(file)
    assert len(recording) == count
    assert recording[0].answer.path == "/v1/orders/"
