"""Recorded traffic: a conversation whose answers are known, played on a sandbox, and compared."""

import base64
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from requests.structures import CaseInsensitiveDict

from payment_sandbox_verify.answer import MISSING, CannotTell, ServiceAnswer, parse_json, value_at
from payment_sandbox_verify.comparing import compare_scene
from payment_sandbox_verify.differences import leaves
from payment_sandbox_verify.normalising import Names
from payment_sandbox_verify.player import Observation, Played, observe
from payment_sandbox_verify.reporting import Comparison, alias_settings
from payment_sandbox_verify.rules import INITIAL_RULES, rule_of_call
from payment_sandbox_verify.service import MethodNames, rename_path, rename_values, reverse
from payment_sandbox_verify.settings import find_settings
from payment_sandbox_verify.steps import ORDERS_PATH, ApiCall, ConversationScene
from payment_sandbox_verify.verifying import ReferenceSandbox, differing_rules, reference_sandbox, summarize

API_PREFIX: Final = "/v1/"
ISSUERS_PATH: Final = "/v1/bank-redirect-nl/issuers/"
CONDITIONAL_HEADERS: Final = ("if-match", "if-none-match")
TAG: Final = re.compile(r'"[^"]*"')


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
CREATED: Final = 201
UNPAID_STATUSES: Final = ("new", "processing")
PAID_ORDER_PATH: Final = re.compile(r"/orders/([^/]+)/(?:refunds|transactions/[^/]+/(?:captures|voids))\b")
"""Calls that only succeed once a customer has paid."""
IDENTIFIERS: Final = ("id", "vault_token")
NO_WEBHOOKS: Final = {"webhooks": [{"then": {"drop": True}}]}
NOT_RECORDED: Final = "no recorded call covers this rule"
ACTIONS_BY_STATUS: Final = {  # the actions that lead to a status
    "new": ("screening approve",),
    "processing": ("customer visit",),
    "completed": ("customer pay", "bank credit", "processor settle", "screening approve"),
    "accepted": ("customer pay", "screening approve"),
    "cancelled": ("customer cancel", "screening decline"),
    "error": ("customer fail", "processor fail", "screening error"),
}


class Mirror:
    """Plays recorded calls on a sandbox, along with the actions by the real customers."""

    def __init__(self, reference: ReferenceSandbox) -> None:
        self._service = reference.service
        self._client = reference.client
        self._ids: dict[str, str] = {}  # recorded id -> sandbox id
        self._etags: dict[str, str] = {}  # recorded ETag -> sandbox ETag
        self._now: datetime | None = None
        self._banks: list[Any] | None = None
        self._client.call(
            "PUT", "/control/faults/", NO_WEBHOOKS
        )  # the recorded orders have the real shop's webhook URLs

    def play(self, recorded: RecordedCall) -> ServiceAnswer:
        """Play a call, and learn the sandbox's identifiers from its answer.

        Raises:
            CannotTell: the call uses an order or a card from before the recording.
        """
        theirs = recorded.answer
        self._scan_code(theirs)
        unknown = self._unknown_identifier(theirs)
        if unknown is not None:
            call = f"{theirs.method} {theirs.path}"
            raise CannotTell(f"{call}: {unknown} was created before the recording")
        self._advance_clock(recorded.at)
        self._reproduce_customer(theirs)
        ours = self._call(recorded)
        self._etags[theirs.headers.get("ETag", "")] = ours.headers.get("ETag", "")
        for leaf in leaves(theirs.data, ours.data):
            is_text = isinstance(leaf.theirs, str) and isinstance(leaf.ours, str)
            if leaf.name in IDENTIFIERS and is_text:
                self._ids.setdefault(leaf.theirs, leaf.ours)
        return ours._replace(path=theirs.path, request_body=theirs.request_body)

    def _call(self, recorded: RecordedCall) -> ServiceAnswer:
        """Make a call; refused calls keep their raw body, and have no key if the answer was a 401."""
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
            if self._banks is None:
                self._banks = self._service.call("GET", ISSUERS_PATH).data
            details["issuer_id"] = value_at(self._banks, "[0].id")

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
        known = self._read_order(order_id)["order"].get("transactions", [])
        for attempt in theirs.list_at("transactions")[len(known) :]:
            method = str(value_at(attempt, "payment_method"))
            self._perform(order_id, "customer choose", payment_method=method)
            self._reach_status(order_id, value_at(attempt, "status"))
        if self._read_order(order_id)["order"]["status"] != theirs.at("status"):
            self._reach_status(order_id, theirs.at("status"))

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
            parts = [self._ids.get(part, part) for part in value.split("/")]
            return self._ids.get(value, "/".join(parts))
        if isinstance(value, dict):
            return {key: self._translate(inner) for key, inner in value.items()}
        return [self._translate(item) for item in value] if isinstance(value, list) else value


def _transaction_details(request_body: Any) -> dict[str, Any]:
    """Return the details of the first transaction in a request, or an empty object."""
    details = value_at(request_body, "transactions[0].payment_method_details")
    return details if isinstance(details, dict) else {}


def compare_recording(
    recorded: Sequence[RecordedCall], name: str, names: MethodNames | None = None
) -> Comparison:
    """Play recorded calls on a sandbox, and compare the answers; ``names`` as in ``read_har``."""
    start = settings_at_start(recorded)
    theirs = _recorded_play(recorded, name)
    ours = _play_recorded(recorded, theirs.scene, start)
    result = summarize([compare_scene(theirs, ours)], NOT_RECORDED)

    def play(plays: Sequence[Played], settings: Mapping[str, Any]) -> list[Played]:
        return [_play_recorded(recorded, theirs.scene, settings) for _ in plays]

    found = find_settings([theirs], result.differences, start, play)
    skipped = tuple(each.problem for each in ours.observations if each.problem)
    settings = {**found.settings, **alias_settings(names or {})}
    return Comparison(name, result, settings, differing_rules(found.remaining), skipped=skipped)


def _recorded_play(recorded: Sequence[RecordedCall], name: str) -> Played:
    """Return recorded calls as a scene and what came back in it."""
    names, steps, observations = Names(None), [], []
    for number, each in enumerate(recorded):
        answer = each.answer
        rules = rule_of_call(answer.method, answer.path)
        if (answer.method, answer.path.rstrip("/")) == ("POST", ORDERS_PATH.rstrip("/")):
            rules = f"{_initial_rule(answer.request_body)} {rules}"
        order = str(answer.at("id")) if answer.is_success and answer.at("id") is not MISSING else ""
        steps.append(ApiCall(method=answer.method, path=answer.path, rules=rules, saves=order))
        names.begin_step(f"call {number + 1}")
        orders = frozenset(answer.path.partition("?")[0].split("/")[3:4])
        observations.append(_without_etag(observe(answer, names))._replace(orders=orders))
    return Played(ConversationScene(name, tuple(steps)), observations, 0.0)


def _initial_rule(request_body: Any) -> str:
    method = value_at(request_body, "transactions[0].payment_method")
    rules = INITIAL_RULES.get("" if method is MISSING else str(method), INITIAL_RULES["other"])
    return rules.split()[0]


def _play_recorded(
    recorded: Sequence[RecordedCall], scene: ConversationScene, settings: Mapping[str, Any]
) -> Played:
    names, observations = Names(None), []
    with reference_sandbox(settings) as reference:
        mirror = Mirror(reference)
        for number, each in enumerate(recorded):
            names.begin_step(f"call {number + 1}")
            try:
                observations.append(_without_etag(observe(mirror.play(each), names)))
            except CannotTell as error:
                observations.append(Observation(problem=str(error)))
    return Played(scene, observations, 0.0)


def _without_etag(observation: Observation) -> Observation:
    """Reduce the ETag to its presence, because others may have changed the order between two calls."""
    shown = observation.shown
    return observation._replace(shown={**shown, "etag": "present"}) if "etag" in shown else observation


def settings_at_start(recorded: Sequence[RecordedCall]) -> Mapping[str, Any]:
    """Return settings with the recorded traffic's mode and the time of its first call."""
    flags = [each.answer.at("flags") for each in recorded if isinstance(each.answer.at("flags"), list)]
    is_live = bool(flags) and not any("is-test" in texts for texts in flags)
    return {"mode": "live" if is_live else "test", "clock": f"frozen@{recorded[0].at.isoformat()}"}
