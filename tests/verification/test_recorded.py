"""Recorded traffic of a service, held against the sandbox."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from payment_sandbox.client.receiver import WebhookReceiver
from payment_sandbox_verify.comparing import Comparison, compare_recording
from payment_sandbox_verify.probing import Verdict
from payment_sandbox_verify.recorded import HarRefused, read_har
from tests.verification.recording import Change, Recorder, careful, recorded


def held(tmp_path: Path, change: Change | None = None) -> Comparison:
    """What is found in a recorded day of a shop."""
    return compare_recording(read_har(recorded(tmp_path / "shop.har", change)), "shop.har")


def test_the_sandbox_answers_as_it_was_recorded(tmp_path: Path) -> None:
    """Customers pay, cancel and stay away in the sandbox as the recording lets one conclude."""
    found = held(tmp_path)
    assert {each.rule: each.reason for each in found.differing} == {}
    assert found.skipped == ()
    agreed = {rule for rule, each in found.theirs.reports.items() if each.verdict is Verdict.AGREES}
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
    assert found.theirs.reports["CARD-21"].reason == "no recorded call covers this rule"


def test_an_untouched_recording_has_no_difference(tmp_path: Path) -> None:
    """Calls are made with their conditions, keys and bodies; people do what later answers show."""
    found = compare_recording(read_har(recorded(tmp_path / "shop.har", do=careful)), "shop.har")
    assert {each.rule: each.reason for each in found.differing} == {}
    assert found.skipped == ()


def _hostile(entry: Any) -> None:
    entry["request"]["headers"] = [
        {"name": "If-Match", "value": "a\r\nb"},
        {"name": "Content-Type", "value": 5},
        {"name": "Idempotency-Key", "value": "é"},
    ]
    if "transactions" in entry["data"]:
        entry["data"]["transactions"] = [5, {"id": "x"}, {"id": ["y"], "payment_method": {}}]


def test_a_hostile_recording_is_compared_all_the_same(tmp_path: Path) -> None:
    """Headers that nobody can send are left out, and what is no attempt is followed by nobody."""
    assert "TX-06" in {each.rule for each in held(tmp_path, _hostile).differing}


def _absolute(entry: Any) -> None:
    for attempt in entry["data"].get("transactions", ()):
        if "payment_url" in attempt:
            attempt["payment_url"] = f"https://{attempt['payment_url']}"


def _accepting(entry: Any) -> None:
    if "USD" in str(entry["request"].get("postData")):
        entry["response"]["status"] = 201
        entry["data"].clear()
        entry["data"].update(id="x", status="new", currency="USD")


def _other_words(entry: Any) -> None:
    if "error" in entry["data"]:
        entry["response"]["status"] = 422
        entry["data"]["error"].update(status=422, type="Refused")


def _pending(entry: Any) -> None:
    if entry["data"].get("status") == "new" and entry["request"]["method"] == "POST":
        entry["data"]["status"] = "open"


def _without(entry: Any) -> None:
    entry["data"].pop("flags", None)


def _another_field(entry: Any) -> None:
    if "transactions" in entry["data"]:
        entry["data"]["risk_score"] = 17


def _flags_by_name(entry: Any) -> None:
    if "flags" in entry["data"]:
        entry["data"]["flags"] = dict.fromkeys(entry["data"]["flags"], True)


def _pending_refund(entry: Any) -> None:
    if entry["request"]["method"] == "POST" and "refund_of_order_id" in entry["data"]:
        entry["data"]["status"] = "pending"


ACCEPTED = {
    "ORD-03",
    "ORD-05",
    "ORD-17",
    "ORD-19",
    "ORD-22",
    "SET-19",
    "SET-26",
    "SET-32",
}


@pytest.mark.parametrize(
    ("change", "rules", "settings"),
    [
        (_another_field, {"END-02"}, {}),
        (_flags_by_name, {"SET-26", "SET-48"}, {}),
        (_pending_refund, {"SET-48"}, {}),
        (_absolute, {"TX-12"}, {"absolute_urls": True}),
        (_accepting, ACCEPTED, {}),  # and what it answers is no order
        (_pending, {"ORD-23", "SET-35", "STA-01", "STA-02", "STA-03"}, {}),
        (_without, {"SET-26", "SET-48"}, {}),
        (
            _other_words,
            {"SET-08"},
            {
                "errors": {
                    "RefundExceedsCaptured": {"status": 422, "type": "Refused"},
                    "ValidationError": {"status": 422, "type": "Refused"},
                }
            },
        ),
    ],
)
def test_a_service_that_differs(
    tmp_path: Path, change: Change, rules: set[str], settings: dict[str, Any]
) -> None:
    """Its differences are told, with the calls that show them, and copied where a setting can."""
    found = held(tmp_path, change)
    assert {each.rule for each in found.differing} == rules
    assert all(" /v1/" in each.reason for each in found.differing), [each.reason for each in found.differing]
    assert found.settings == settings
    assert (found.not_copied == []) is bool(settings)


def test_names_banks_and_addresses_of_the_real_service(tmp_path: Path) -> None:
    """The account's names of methods are translated, banks are chosen anew, and no webhook is sent."""
    receiver = WebhookReceiver()

    def do(recorder: Recorder) -> None:
        details = {"issuer_id": recorder.call("GET", "/v1/bank-redirect-nl/issuers/")[0]["id"]}
        bank = {"payment_method": "bank-redirect-nl", "payment_method_details": details}
        order = {"currency": "EUR", "amount": 1000, "webhook_url": receiver.url, "transactions": [bank]}
        made = recorder.call("POST", "/v1/orders/", order)
        recorder.act(made, "customer", "pay")
        recorder.call("GET", f"/v1/orders/{made['id']}/")
        receiver.wait_for(made["id"], nth=2)  # processing and completed; nothing of it comes later

    file = recorded(tmp_path / "shop.har", do=do)
    first = len(receiver.received)
    text = file.read_text(encoding="utf-8").replace("bank-redirect-nl", "my-bank-button")
    issuer = re.search(r"SBX[A-Z0-9]+", text)
    assert issuer is not None
    entries = json.loads(text.replace(issuer[0], "REALNL2A"))
    entries["log"]["entries"] = [
        entry for entry in entries["log"]["entries"] if "issuers" not in entry["request"]["url"]
    ]
    file.write_text(json.dumps(entries), encoding="utf-8")
    names = {"bank-redirect-nl": "my-bank-button"}
    found = compare_recording(read_har(file, names), "shop.har", names)
    assert {each.rule: each.reason for each in found.differing} == {}
    assert found.settings == {"aliases": {"my-bank-button": "bank-redirect-nl"}}
    assert compare_recording(read_har(file), "shop.har").differing
    assert len(receiver.received) == first, "the real shop hears nothing of it"
    receiver.close()


def test_orders_of_before_the_recording_are_left_out(tmp_path: Path) -> None:
    """And named."""

    def do(recorder: Recorder) -> None:
        order = recorder.call("POST", "/v1/orders/", {"currency": "EUR", "amount": 1000})
        recorder.entries.clear()
        recorder.call("GET", f"/v1/orders/{order['id']}/")
        recorder.call("POST", "/v1/orders/", {"currency": "EUR", "amount": 1000})

    found = compare_recording(read_har(recorded(tmp_path / "shop.har", do=do)), "shop.har")
    assert len(found.skipped) == 1
    assert found.skipped[0].endswith("was created before the recording")
    assert found.differing == []


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
def test_what_is_no_recording_is_refused(tmp_path: Path, text: str, words: str) -> None:
    """With the place in the file."""
    file = tmp_path / "shop.har"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(HarRefused, match=words):
        read_har(file)


def test_entries_without_answer_or_of_other_hosts_pages_are_left_out(tmp_path: Path) -> None:
    """And the address may have a prefix before /v1/."""
    file = recorded(tmp_path / "shop.har")
    document = json.loads(file.read_text(encoding="utf-8"))
    entries = document["log"]["entries"]
    count = len(entries)
    for entry in entries:
        entry["request"]["url"] = entry["request"]["url"].replace("/v1/", "/gateway/v1/")
    entries.append({**entries[0], "response": {"status": 0}})
    entries.append({**entries[0], "request": {"method": "GET", "url": "https://shop.example/basket"}})
    file.write_text(json.dumps(document), encoding="utf-8")
    found = read_har(file)
    assert len(found) == count
    assert found[0].answer.path == "/v1/orders/"
