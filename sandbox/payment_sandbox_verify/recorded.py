"""Recorded traffic: a conversation whose answers are known, played on a sandbox, and compared."""

import base64
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from requests.structures import CaseInsensitiveDict

from payment_sandbox.web.error_bodies import MERCHANT_PATHS
from payment_sandbox_verify.answer import UNAUTHORIZED, ServiceAnswer, parse_json, value_at
from payment_sandbox_verify.comparing import compare_scene
from payment_sandbox_verify.normalising import Names
from payment_sandbox_verify.player import Observation, Played, SandboxPlayer, observe
from payment_sandbox_verify.recording import (
    CONDITIONAL_HEADERS,
    NO_WEBHOOKS,
    Recording,
    RecordingRefused,
    read_document,
)
from payment_sandbox_verify.reporting import Comparison, alias_settings
from payment_sandbox_verify.rules import initial_rules, rule_of_call
from payment_sandbox_verify.service import MethodNames, rename_path, rename_values, reverse
from payment_sandbox_verify.settings_search import find_settings
from payment_sandbox_verify.steps import ORDERS_PATH, ApiCall, Control, Reach
from payment_sandbox_verify.verifying import differing_rules, reference_sandbox, summarize


class RecordedCall(NamedTuple):
    """A recorded call with its time and answer.

    ``raw`` is the body as sent, and ``headers`` are the request headers to repeat.
    """

    at: datetime
    answer: ServiceAnswer
    raw: str
    headers: Mapping[str, str]


def read_har(file: Path, names: MethodNames | None = None) -> list[RecordedCall]:
    """Return the calls to this API in a file, oldest first; ``names`` are the account's names for methods.

    Raises:
        RecordingRefused: the file is malformed (the message names the position), or has no such call.
        OSError: the file cannot be read.
    """
    document = read_document(file)
    log = document.get("log") if isinstance(document, dict) else None
    entries = log.get("entries") if isinstance(log, dict) else None
    if not isinstance(entries, list):
        raise RecordingRefused("the file has no log.entries, so it is not a HAR file")
    ours = reverse(names or {})
    calls = sorted(
        (_rename_methods(call, ours) for call in _parse_calls(entries)), key=lambda recorded: recorded.at
    )
    if not calls:
        raise RecordingRefused(
            f"none of the {len(entries)} entries calls a path that begins with {MERCHANT_PATHS}"
        )
    return calls


def _rename_methods(recorded: RecordedCall, names: MethodNames) -> RecordedCall:
    answer = recorded.answer
    request_body = rename_values(answer.request_body, names)
    return recorded._replace(
        raw=recorded.raw if request_body == answer.request_body else json.dumps(request_body),
        answer=answer._replace(
            path=rename_path(answer.path, names),
            request_body=request_body,
            data=rename_values(answer.data, names),
        ),
    )


def _parse_calls(entries: list[Any]) -> Iterator[RecordedCall]:
    for index, entry in enumerate(entries):
        try:
            recorded = _parse_call(entry)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise RecordingRefused(
                f"log.entries[{index}] is malformed: {type(error).__name__} {error}"
            ) from None
        if recorded is not None:
            yield recorded


def _parse_call(entry: Mapping[str, Any]) -> RecordedCall | None:
    request, response = entry["request"], entry["response"]
    if not isinstance(request["method"], str):
        raise TypeError(f"the method {request['method']!r} is not a string")
    parts = urlsplit(request["url"])
    begin = parts.path.find(MERCHANT_PATHS)
    if begin < 0 or not response["status"]:  # a status of 0 means no answer
        return None
    path = parts.path[begin:] + (f"?{parts.query}" if parts.query else "")
    content = _parse_content(response.get("content", {}))
    raw = (request.get("postData") or {}).get("text", "")
    request_body = parse_json(raw.encode())
    at = datetime.fromisoformat(entry["startedDateTime"])
    if at.tzinfo is None:
        raise ValueError(f"startedDateTime {entry['startedDateTime']!r} has no offset")
    status = int(response["status"])
    answer = ServiceAnswer(
        request["method"], path, request_body, status, _parse_headers(response), parse_json(content), content
    )
    headers = _parse_headers(request).items()
    request_headers = {
        name: value for name, value in headers if name.lower() in REPLAYED_HEADERS and IS_SENDABLE(value)
    }
    return RecordedCall(at, answer, raw, request_headers)


def _parse_headers(message: Mapping[str, Any]) -> CaseInsensitiveDict[str]:
    return CaseInsensitiveDict((each["name"], str(each["value"])) for each in message.get("headers", ()))


def _parse_content(content: Mapping[str, Any]) -> bytes:
    text = content.get("text", "")
    return base64.b64decode(text) if content.get("encoding") == "base64" else text.encode()


REPLAYED_HEADERS: Final = (*CONDITIONAL_HEADERS, "idempotency-key", "content-type")
IS_SENDABLE: Final = re.compile(r"[\x20-\x7e]*").fullmatch
UNPAID_STATUSES: Final = ("new", "processing")
PAID: Final = "completed"
PAID_ORDER_PATH: Final = re.compile(r"/orders/([^/]+)/(?:refunds|transactions/[^/]+/(?:captures|voids))\b")
"""Calls that only succeed once a customer has paid."""
NOT_RECORDED: Final = "no recorded call covers this rule"


class Traffic:
    """Recorded traffic as a recording, with steps for what the real customers did in between."""

    def __init__(self, calls: Sequence[RecordedCall]) -> None:
        self.recording = Recording()
        self.skipped: list[str] = []
        self._orders: dict[str, ServiceAnswer] = {}  # as they were read last, by recorded id
        self._codes: dict[str, Any] = {}  # the bodies that created QR codes, by recorded id
        for call in calls:
            self._add(call)

    def _add(self, recorded: RecordedCall) -> None:
        """Add a call, unless it uses an order or a card from before the recording."""
        answer = recorded.answer
        self._scan_code(answer)
        unknown = self._unknown_identifier(answer)
        if unknown is not None:
            self.skipped.append(f"{answer.method} {answer.path}: {unknown} was created before the recording")
            return
        self.recording.pause_until(recorded.at)
        self._reach_states(answer)
        bank = _transaction_details(answer.request_body).get("issuer_id")
        if answer.is_success and isinstance(bank, str):
            self.recording.refer_to_bank(bank)
        key = "" if answer.status == UNAUTHORIZED else None
        self.recording.add_call(
            answer, recorded.raw.encode(), recorded.headers, key=key, rules=_rules_of(answer)
        )
        self._learn(answer)

    def _learn(self, answer: ServiceAnswer) -> None:
        if answer.is_success and isinstance(answer.at("id"), str):
            if answer.path.startswith(ORDERS_PATH):
                self._orders[answer.at("id")] = answer
            elif answer.method == "POST":
                self._codes[answer.at("id")] = answer.request_body

    def _unknown_identifier(self, answer: ServiceAnswer) -> str | None:
        """Return an identifier in the call that no recorded answer has introduced, if any."""
        if not answer.is_success:
            return None
        known = self.recording.references
        token = _transaction_details(answer.request_body).get("vault_token")
        if token is not None and token not in known:
            return "a stored card"
        parts = answer.path.partition("?")[0].strip("/").split("/")
        if parts[1:2] != ["orders"]:
            return None
        named = (*parts[2:3], *(parts[4:5] if parts[3:4] == ["transactions"] else ()))
        return next((part for part in named if part not in known), None)

    def _reach_states(self, answer: ServiceAnswer) -> None:
        """Add what the customers did since the call before, as far as this call shows it."""
        before = self._orders.get(str(answer.at("id")))
        paid = PAID_ORDER_PATH.search(answer.path) if answer.is_success else None
        if answer.method == "GET" and before is not None:
            attempts = before.list_at("transactions")
            for attempt in answer.list_at("transactions")[len(attempts) :]:
                self._choose(answer.at("id"), value_at(attempt, "payment_method"))
                self._reach(answer.at("id"), value_at(attempt, "status"))
            self._reach(answer.at("id"), answer.at("status"))
        elif paid is not None and paid[1] in self._orders:
            order = self._orders[paid[1]]
            if order.at("status") in UNPAID_STATUSES:
                self._reach(paid[1], PAID)
                self._orders[paid[1]] = order._replace(data={**order.data, "status": PAID})

    def _choose(self, order_id: str, method: Any) -> None:
        path = f"/control/orders/{self.recording.references[order_id]}/act/"
        body = {"actor": "customer", "action": "choose", "payment_method": str(method)}
        self.recording.add(Control(method="POST", path=path, body=body))

    def _reach(self, order_id: str, status: Any) -> None:
        self.recording.add(Reach(order=self.recording.references[order_id], status=str(status)))

    def _scan_code(self, answer: ServiceAnswer) -> None:
        """Add the scan of a QR code if the recording shows an order that was created by scanning it."""
        code, order_id = answer.at("extra.bankqr_id"), answer.at("id")
        if answer.method != "GET" or code not in self._codes or order_id in self.recording.references:
            return
        path, name = f"/control/bankqr/{self.recording.references[code]}/scan/", self.recording.next_name
        is_changeable = value_at(self._codes[code], "amount_changeable") is True
        body = {"amount": answer.at("amount")} if is_changeable else {}
        self.recording.add(Control(method="POST", path=path, body=body, saves=name))
        self.recording.references[order_id] = f"<<{name}.id>>"
        self._orders[order_id] = answer._replace(data={})


def _rules_of(answer: ServiceAnswer) -> str:
    rules = rule_of_call(answer.method, answer.path)
    if (answer.method, answer.path.rstrip("/")) != ("POST", ORDERS_PATH.rstrip("/")):
        return rules
    initial = initial_rules(value_at(answer.request_body, "transactions[0].payment_method"))
    return f"{initial[0]} {rules}"


def _transaction_details(request_body: Any) -> dict[str, Any]:
    """Return the details of the first transaction in a request, or an empty object."""
    details = value_at(request_body, "transactions[0].payment_method_details")
    return details if isinstance(details, dict) else {}


def compare_recording(
    recorded: Sequence[RecordedCall], name: str, names: MethodNames | None = None
) -> Comparison:
    """Play recorded calls on a sandbox, and compare the answers; ``names`` as in ``read_har``."""
    start, traffic = settings_at_start(recorded), Traffic(recorded)
    recording = traffic.recording.played(name)
    theirs = _observe_again(recording)

    def play(reference: SandboxPlayer, plays: Sequence[Played]) -> list[Played]:
        reference.control.call("PUT", "/control/faults/", NO_WEBHOOKS)
        return [_observe_again(reference.play(recording.scene)) for _ in plays]

    with reference_sandbox(start) as reference:
        (ours,) = play(reference, [theirs])
    result = summarize([compare_scene(theirs, ours)], NOT_RECORDED)
    found = find_settings([theirs], result.differences, start, play)
    settings = {**found.settings, **alias_settings(names or {})}
    skipped = (*traffic.skipped, *_describe_problems(theirs, ours))
    return Comparison(name, result, settings, differing_rules(found.remaining), skipped=skipped)


def _describe_problems(theirs: Played, ours: Played) -> Iterator[str]:
    for recorded, each in zip(theirs.observations, ours.observations, strict=True):
        if each.problem:
            yield f"{recorded.answer.method} {recorded.answer.path}: {each.problem}"


def _observe_again(played: Played) -> Played:
    """Return a play without the times, which depend on the customers.

    An ETag is reduced to its presence, because others may have changed the order between two calls.
    """
    names, observations = Names(None), []
    for number, (step, each) in enumerate(zip(played.scene.steps, played.observations, strict=True)):
        names.begin_step(f"call {number}")
        observation = Observation(orders=each.orders, problem=each.problem)
        if isinstance(step, ApiCall) and not each.problem:
            observation = observe(each.answer, names)._replace(orders=each.orders)
            if "etag" in observation.shown:
                observation.shown["etag"] = "present"
        observations.append(observation)
    return played._replace(observations=observations)


def settings_at_start(recorded: Sequence[RecordedCall]) -> Mapping[str, Any]:
    """Return settings with the recorded traffic's mode and the time of its first call."""
    flags = [each.answer.at("flags") for each in recorded if isinstance(each.answer.at("flags"), list)]
    is_live = bool(flags) and not any("is-test" in texts for texts in flags)
    return {"mode": "live" if is_live else "test", "clock": f"frozen@{recorded[0].at.isoformat()}"}
