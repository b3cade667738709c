"""Reads the recorded calls in a HAR file, replays them in the sandbox, and compares the answers."""

import base64
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import urlsplit

from requests.structures import CaseInsensitiveDict

from payment_sandbox.client.replaying import CONDITIONAL_HEADERS, ETAG, NO_WEBHOOKS, TAG
from payment_sandbox_verify.answer import MISSING, ServiceAnswer, parse_json, value_at
from payment_sandbox_verify.checks import Check, check_that
from payment_sandbox_verify.differences import EXPLAIN_HEADER
from payment_sandbox_verify.fields import (
    Leaf,
    are_in_same_state,
    is_required,
    leaves,
    rule_of_call,
    rule_of_field,
)
from payment_sandbox_verify.samples import INVOICE, TRANSFER
from payment_sandbox_verify.service import MethodNames, rename_path, rename_values, reverse

if TYPE_CHECKING:
    from payment_sandbox.client.client import SandboxClient
    from payment_sandbox_verify.service import Service

API_PREFIX: Final = "/v1/"


class HarRefused(ValueError):
    """The file is not a HAR file, or has no call to this API."""


class RecordedCall(NamedTuple):
    """A recorded call with its time and answer.

    ``raw`` is the body as sent, and ``headers`` are the request headers to replay.
    """

    at: datetime
    answer: ServiceAnswer
    raw: str
    headers: Mapping[str, str]


def read_har(file: Path, names: MethodNames | None = None) -> list[RecordedCall]:
    """Return the calls to this API in a file, oldest first; ``names`` are the account's names for methods.

    Raises:
        HarRefused: the file is malformed (the message names the position), or has no such call.
        OSError: the file cannot be read.
    """
    try:
        document = json.loads(file.read_bytes())
    except UnicodeDecodeError as error:
        raise HarRefused(f"byte {error.start} is not UTF-8") from None
    except json.JSONDecodeError as error:
        raise HarRefused(
            f"line {error.lineno}, column {error.colno}: this is not JSON: {error.msg}"
        ) from None
    except RecursionError:
        raise HarRefused("the JSON is nested too deeply") from None
    log = document.get("log") if isinstance(document, dict) else None
    entries = log.get("entries") if isinstance(log, dict) else None
    if not isinstance(entries, list):
        raise HarRefused("the file has no log.entries, so it is not a HAR file")
    ours = reverse(names or {})
    calls = sorted(
        (_rename_methods(call, ours) for call in _parse_calls(entries)), key=lambda recorded: recorded.at
    )
    if not calls:
        raise HarRefused(f"none of the {len(entries)} entries calls a path that begins with {API_PREFIX}")
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
            raise HarRefused(f"log.entries[{index}] is malformed: {type(error).__name__} {error}") from None
        if recorded is not None:
            yield recorded


def _parse_call(entry: Mapping[str, Any]) -> RecordedCall | None:
    request, response = entry["request"], entry["response"]
    if not isinstance(request["method"], str):
        raise TypeError(f"the method {request['method']!r} is not a string")
    parts = urlsplit(request["url"])
    begin = parts.path.find(API_PREFIX)
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
QUOTED_TEXT: Final = re.compile(r'(?<=")[^"\\]*(?=")')
UNAUTHORIZED: Final = 401
INITIAL_STATUS_RULES: Final = {TRANSFER: "STA-10", INVOICE: "STA-17", None: "STA-03"}
REDIRECT_STATUS_RULE: Final = "STA-02"


def rule_of_initial_status(request_body: Any) -> str:
    """Return the rule on an order's initial status."""
    transactions = request_body.get("transactions") if isinstance(request_body, dict) else None
    if not transactions:
        return INITIAL_STATUS_RULES[None]
    first = transactions[0] if isinstance(transactions, list) else {}
    return (
        INITIAL_STATUS_RULES.get(first.get("payment_method"), REDIRECT_STATUS_RULE)
        if isinstance(first, dict)
        else REDIRECT_STATUS_RULE
    )


CREATED: Final = 201
UNPAID_STATUSES: Final = ("new", "processing")
PAID_ORDER_PATH: Final = re.compile(r"/orders/([^/]+)/(?:refunds|transactions/[^/]+/(?:captures|voids))\b")
"""Calls that only succeed once a customer has paid."""
IDENTIFIERS: Final = ("id", "vault_token")
ACTIONS_BY_STATUS: Final = {  # the actions that lead to a status
    "new": ("screening approve",),
    "processing": ("customer visit",),
    "completed": ("customer pay", "bank credit", "processor settle", "screening approve"),
    "accepted": ("customer pay", "screening approve"),
    "cancelled": ("customer cancel", "screening decline"),
    "error": ("customer fail", "processor fail", "screening error"),
}


class Mirror:
    """Replays recorded calls in the sandbox, along with the actions by the real customers."""

    def __init__(self, service: "Service", client: "SandboxClient") -> None:
        self.answers: list[ServiceAnswer] = []
        self.theirs: list[ServiceAnswer] = []
        self.skipped: list[str] = []
        self._service = service
        self._client = client
        self._ids: dict[str, str] = {}  # recorded id -> sandbox id
        self._etags: dict[str, str] = {}  # recorded ETag -> sandbox ETag
        self._reported_fields: set[str] = set()
        self._now: datetime | None = None
        client.call(
            "PUT", "/control/faults/", NO_WEBHOOKS
        )  # the recorded orders have the real shop's webhook URLs

    def replay_calls(self, recorded: Sequence[RecordedCall]) -> Iterator[Check]:
        """Replay every call, and yield the checks of its answer."""
        for each in recorded:
            yield from self._replay(each)

    def _replay(self, recorded: RecordedCall) -> Iterator[Check]:
        theirs = recorded.answer
        self._scan_code(theirs)
        unknown = self._unknown_identifier(theirs)
        if unknown is not None:
            self.skipped.append(f"{theirs.call}: {unknown} was created before the recording")
            return
        self._advance_clock(recorded.at)
        self._reproduce_customer(theirs)
        ours = self._replay_call(recorded)
        self._etags[theirs.headers.get(ETAG, "")] = ours.headers.get(ETAG, "")
        theirs = theirs._replace(call_key=(len(self.answers),))
        ours = ours._replace(path=theirs.path, request_body=theirs.request_body, call_key=theirs.call_key)
        self.answers.append(ours)
        self.theirs.append(theirs)
        yield from self._compare_answers(theirs, ours)

    def _replay_call(self, recorded: RecordedCall) -> ServiceAnswer:
        """Replay a call; refused calls keep their raw body, and have no key if the answer was a 401."""
        theirs, headers = recorded.answer, dict(recorded.headers)
        for name, value in headers.items():
            if name.lower() in CONDITIONAL_HEADERS:
                headers[name] = TAG.sub(lambda tag: self._etags.get(tag[0], tag[0]), value)
        path = self._translate(theirs.path)
        if theirs.is_success:
            request_body = self._translate(theirs.request_body)
            self._choose_bank(request_body)
            return self._service.call(theirs.method, path, request_body, headers=headers)
        raw = QUOTED_TEXT.sub(lambda text: self._ids.get(text[0], text[0]), recorded.raw).encode()
        key = "" if theirs.status == UNAUTHORIZED else None
        return self._service.call(theirs.method, path, content=raw or None, headers=headers, key=key)

    def _unknown_identifier(self, answer: ServiceAnswer) -> str | None:
        """Return an identifier in the call that no recorded answer has introduced, if any."""
        token = _transaction_details(answer.request_body).get("vault_token")
        if answer.is_success and token is not None and token not in self._ids:
            return "a stored card"
        parts = answer.path.partition("?")[0].strip("/").split("/")
        if parts[1:2] != ["orders"]:
            return None
        for part in (*parts[2:3], *(parts[4:5] if parts[3:4] == ["transactions"] else ())):
            if part not in self._ids and answer.is_success:
                return str(part)
        return None

    def _advance_clock(self, at: datetime) -> None:
        if self._now is not None and at > self._now:
            gap: timedelta = at - self._now
            self._client.clock.advance(gap)
        self._now = at if self._now is None else max(at, self._now)

    def _choose_bank(self, request_body: Any) -> None:
        """Replace the bank with a bank from the sandbox's own list."""
        details = _transaction_details(request_body)
        if "issuer_id" in details and details["issuer_id"] not in self._ids.values():
            details["issuer_id"] = self._service.issuer

    def _reproduce_customer(self, theirs: ServiceAnswer) -> None:
        """Reproduce the customers' actions since the previous recorded call."""
        if theirs.method == "GET" and (order_id := self._ids.get(str(theirs.at("id")))) is not None:
            self._reproduce_attempts(order_id, theirs)
            return
        paid = PAID_ORDER_PATH.search(theirs.path) if theirs.is_success else None
        order_id = self._ids.get(paid[1]) if paid is not None else None
        if order_id is not None and self._read_order(order_id)["order"]["status"] in UNPAID_STATUSES:
            self._reach_status(order_id, "completed")

    def _reproduce_attempts(self, order_id: str, theirs: ServiceAnswer) -> None:
        """Reproduce the choices of methods and the actions that explain a recorded order."""
        attempts = theirs.at("transactions")
        attempts = attempts if isinstance(attempts, list) else []
        for attempt in attempts[len(self._read_attempts(order_id)) :]:
            self._perform(
                order_id, "customer choose", payment_method=str(value_at(attempt, "payment_method"))
            )
            self._reach_status(order_id, value_at(attempt, "status"))
        if self._read_order(order_id)["order"]["status"] != theirs.at("status"):
            self._reach_status(order_id, theirs.at("status"))

    def _read_attempts(self, order_id: str) -> list[Any]:
        attempts: list[Any] = self._read_order(order_id)["order"].get("transactions", [])
        return attempts

    def _reach_status(self, order_id: str, status: Any) -> None:
        """Perform the action that leads to a status, if the order allows it."""
        possible = self._read_order(order_id)["actions"]
        for step in ACTIONS_BY_STATUS.get(str(status), ()):
            actor, _, action = step.partition(" ")
            if action in possible[actor]:
                self._perform(order_id, step)
                return

    def _perform(self, order_id: str, step: str, **details: str) -> None:
        actor, _, action = step.partition(" ")
        body = {"actor": actor, "action": action, **details}
        self._client.exchange("POST", f"/control/orders/{order_id}/act/", body)

    def _read_order(self, order_id: str) -> Any:
        return self._client.call("GET", f"/control/orders/{order_id}/")

    def _scan_code(self, theirs: ServiceAnswer) -> None:
        """Scan a QR code if the recording shows an order created by scanning it."""
        code, order_id = self._ids.get(str(theirs.at("extra.bankqr_id"))), theirs.at("id")
        if theirs.method != "GET" or code is None or order_id in self._ids:
            return
        for body in ({"amount": theirs.at("amount")}, {}):
            status, order = self._client.exchange("POST", f"/control/bankqr/{code}/scan/", body)
            if status == CREATED:
                self._ids[order_id] = order["id"]
                return

    def _translate(self, value: Any) -> Any:
        """Replace recorded identifiers in a value with the sandbox's identifiers."""
        if isinstance(value, str):
            if value in self._ids:
                return self._ids[value]
            parts = [self._ids.get(part, part) for part in value.split("/")]
            return "/".join(parts)
        if isinstance(value, dict):
            return {key: self._translate(inner) for key, inner in value.items()}
        return [self._translate(item) for item in value] if isinstance(value, list) else value

    def _compare_answers(self, theirs: ServiceAnswer, ours: ServiceAnswer) -> Iterator[Check]:
        call = rule_of_call(theirs.method, theirs.path)
        if theirs.is_success and ours.is_success:
            yield check_that(
                call, theirs.status == ours.status, f"{theirs.call}: {theirs.summary}, not {ours.status}"
            )
            yield from self._compare_values(theirs, ours)
            return
        rule = ours.headers.get(EXPLAIN_HEADER, "").partition(" ")[0] or call
        reason = (
            f"{theirs.call}: {theirs.summary}, the sandbox returned {ours.summary}: {ours.at('error.value')}"
        )
        is_same_result = theirs.is_success == ours.is_success
        yield Check(rule, is_same_result, "" if is_same_result else reason, theirs)
        if is_same_result:
            yield check_that("SET-08", theirs.status == ours.status, reason)

    def _compare_values(self, theirs: ServiceAnswer, ours: ServiceAnswer) -> Iterator[Check]:
        is_same_state = are_in_same_state(theirs, ours)
        for leaf in leaves(theirs.data, ours.data):
            self._record_identifier(leaf)
            is_comparable = is_same_state or leaf.reference is not MISSING
            if is_comparable and is_required(theirs, leaf) and not self._is_reported(leaf):
                yield _compare_value(theirs, leaf)

    def _is_reported(self, leaf: Leaf) -> bool:
        """Whether the sandbox lacks the field, and an earlier check has reported it."""
        if leaf.reference is not MISSING or leaf.problem is None:
            return False
        was_reported = leaf.name in self._reported_fields
        self._reported_fields.add(leaf.name)
        return was_reported

    def _record_identifier(self, leaf: Leaf) -> None:
        if leaf.name in IDENTIFIERS and isinstance(leaf.value, str) and isinstance(leaf.reference, str):
            self._ids.setdefault(leaf.value, leaf.reference)


def _transaction_details(request_body: Any) -> dict[str, Any]:
    """Return the details of the first transaction in a request, or an empty object."""
    details = value_at(request_body, "transactions[0].payment_method_details")
    return details if isinstance(details, dict) else {}


def _compare_value(theirs: ServiceAnswer, leaf: Leaf) -> Check:
    """Compare a value; most fields only have to exist, with a value of the same kind."""
    rule = rule_of_field(theirs, leaf.path)
    if leaf.path == "status" and theirs.method == "POST" and rule == "STA-01":
        rule = rule_of_initial_status(theirs.request_body)
    return check_that(rule, leaf.difference is None, f"{theirs.call}: {leaf.difference}")


def settings_at_start(recorded: Sequence[RecordedCall]) -> Mapping[str, Any]:
    """Return settings with the recorded traffic's mode and the time of its first call."""
    flags = [each.answer.at("flags") for each in recorded if isinstance(each.answer.at("flags"), list)]
    is_live = bool(flags) and not any("is-test" in texts for texts in flags)
    return {"mode": "live" if is_live else "test", "clock": f"frozen@{recorded[0].at.isoformat()}"}
