"""Replays the evidence of an order in a new project, and reports the differences."""

import json
import re
from base64 import b64decode
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final, NamedTuple

from payment_sandbox.client.client import SandboxClient
from payment_sandbox.kernel.masking import MASK
from payment_sandbox.kernel.patterns import UUID
from payment_sandbox.operations.history import EVIDENCE_FORMAT
from payment_sandbox.projects.default_scenario import DEFAULT_NAME
from payment_sandbox.projects.journal import CHOICES_MAX, JOURNAL_BODY_BYTES, SETTINGS_NOT_REPLAYED
from payment_sandbox.scenarios.effects import PHASE_AFTER, ErrorStatus, Hang, RateLimit, Reset, Silence

Evidence = Mapping[str, Any]
"""A JSON object of the evidence."""
METHOD_PATTERN: Final = re.compile(r"[A-Z]{1,20}")
MERCHANT_API: Final = "/v1/"  # a path from a file must not lead to another host
REPLAY_PROJECT: Final = "replay"  # the name of the replay's project
EXPIRES_AFTER: Final = "P7D"
URL_FIELDS: Final = ("payment_url", "order_url", "qr_url", "issuer_authentication_url")
IGNORED_FIELDS: Final = (*URL_FIELDS, "beneficiary", "events", "client")
MANUAL_ACTION_PATHS: Final = {"capture": "captures/amount/", "void": "voids/amount/"}
NO_WEBHOOKS: Final = {"webhooks": [{"then": {"drop": True}}]}
INITIAL_STATE: Final[Evidence] = {
    **dict.fromkeys(("agenda", "orders", "credentials", "qr_requests", "deliveries", "decisions"), ()),
    **dict.fromkeys(("rule_uses", "scenario_faults", "fault_uses", "swapped"), ()),
    "faults": {"faults": [], "webhooks": []},
    "id_counts": {},
    "sequence": 0,
    "deliveries_dropped": 0,
    "clock_mode": "frozen",
    "clock_rate": 1.0,
}
"""The history and state that the snapshot of a new project contains."""
CREATING_ACTIONS: Final = ("create", "scan")
REFUSED_STATUS: Final = 400
SCENARIO: Final = "scenario"
ETAG: Final = "ETag"
IDENTIFIER: Final = re.compile(rf"{UUID.pattern}|\b[0-9a-f]{{32}}\b")
"""An identifier, or the token of a stored card."""
TAG: Final = re.compile(r'"[^"]*"')
CONDITIONAL_HEADERS: Final = ("if-match", "if-none-match")
CONNECTION_HEADERS: Final = (
    *("host", "authorization", "content-length", "transfer-encoding", "connection", "accept-encoding"),
    *("expect", "user-agent"),
)
HAD_FAULT: Final = "had a fault"
CREATING_PATHS: Final = ("/orders", "/refunds")
PREVENTING_EFFECTS: Final = (ErrorStatus, RateLimit, Hang, Reset, Silence)
"""The fault effects that prevent a request from being processed, unless their phase is ``after``."""
MISSING_RECORD: Final = "uses a record from before the start of the evidence"
CARD_CODE: Final = re.compile(rf'("cvc"\s*:\s*)"{re.escape(MASK)}"')
CARD_CODE_PLACEHOLDER: Final = r'\1"123"'  # a placeholder for the card code, which the journal never stores
TIME_TOLERANCE: Final = timedelta(seconds=1)  # a running clock advances during a request
DIFFERENCES_MAX: Final = 5  # the number reported per response


class EvidenceRefused(ValueError):
    """The file cannot be replayed."""


class ReplayStep(NamedTuple):
    """A recorded request or action with its sandbox time."""

    real_at: str
    at: str
    label: str
    run: "Callable[[Replay], Iterator[str]]"


class ReplayOutcome(NamedTuple):
    """The result of a replay: the differences, the skipped steps, and the project created for it."""

    differences: list[str]
    skipped: list[str]
    project_id: str
    steps: int


def replay(server: SandboxClient, evidence: Any) -> ReplayOutcome:
    """Replay evidence in a new project, without delivering webhooks.

    Raises:
        EvidenceRefused: the document is not evidence, or has no step to replay.
        SandboxError: the server refuses the project, its scenario or the clock.
    """
    document = _validate(evidence)
    try:
        changed, steps = _recorded_changes(document), list(_recorded_steps(document))
        if not steps:
            raise EvidenceRefused("it has no request or action to replay")
        steps = sorted([*changed.steps[::-1], *steps], key=lambda step: step.real_at)
        replay = Replay(server, document, changed, steps)
        with replay.cleanup():
            return replay.run()
    except EvidenceRefused:
        raise
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise EvidenceRefused(f"malformed: {type(error).__name__} {error}") from error


def _validate(evidence: Any) -> Evidence:
    if not isinstance(evidence, dict) or evidence.get("format") != EVIDENCE_FORMAT:
        raise EvidenceRefused(f"not evidence from the dashboard: its format is not {EVIDENCE_FORMAT!r}")
    missing = [name for name in ("journal", "actions", "snapshot", "clock") if name not in evidence]
    if missing:
        raise EvidenceRefused(f"it has no {', '.join(missing)}")
    return dict(evidence)


class RecordedChanges(NamedTuple):
    """The initial settings and scenario, and the steps that change them."""

    settings: Evidence
    scenario: Evidence
    steps: Sequence[ReplayStep]
    unknown: Sequence[str]


def _recorded_changes(evidence: Evidence) -> RecordedChanges:
    """Reconstruct the initial settings and scenario by undoing the recorded changes, newest first."""
    settings, scenario = dict(evidence["snapshot"]["settings"]), evidence["snapshot"][SCENARIO]
    choices = evidence.get("choices", ())
    steps, unknown = [], []
    if len(choices) >= CHOICES_MAX:
        unknown.append(f"settings and scenario before {choices[0]['at']} are unknown")
    for choice in reversed(choices):
        kind, before = choice["kind"], choice["before"]
        if before is None:
            unknown.append(f"the {kind} before {choice['at']} was too large to record")
            continue
        changed = scenario
        if kind != SCENARIO:
            changed = {name: settings[name] for name in before}
        run = partial(Replay.change, kind=kind, changed=changed)
        steps.append(ReplayStep(choice["real_at"], choice["at"], f"change of {kind}", run))
        if kind == SCENARIO:
            scenario = before
        else:
            settings |= before
    return RecordedChanges(settings, scenario, steps, unknown)


def _recorded_steps(evidence: Evidence) -> Iterator[ReplayStep]:
    for entry in evidence["journal"]:
        label = f"{entry['method']} {entry['path']}"
        if not METHOD_PATTERN.fullmatch(entry["method"]) or not entry["path"].startswith(MERCHANT_API):
            raise EvidenceRefused(f"{label} is not a request to the merchant API")
        yield ReplayStep(entry["real_at"], entry["at"], label, partial(Replay.request, entry=entry))
    for action in evidence["actions"]:
        if action["via"] != "scenario" and action["action"] != "return" and action["order_id"] is not None:
            label = f"{action['actor']} {action['action']}"
            yield ReplayStep(action["real_at"], action["at"], label, partial(Replay.act, action=action))


class Replay:
    """One replay: its project, and the map from recorded identifiers to new ones."""

    def __init__(
        self,
        server: SandboxClient,
        evidence: Evidence,
        changed: RecordedChanges,
        steps: list[ReplayStep],
    ) -> None:
        self._evidence = evidence
        self._steps = steps
        self._ids: dict[str, str] = {}  # recorded id -> new id
        self._etags: dict[str, str] = {}  # recorded ETag -> new ETag
        self._skipped = list(changed.unknown)
        self._differences: list[str] = []
        self._earlier_ids = _record_ids(evidence["snapshot"])
        settings = {
            **changed.settings,
            **dict.fromkeys(SETTINGS_NOT_REPLAYED),
            "name": REPLAY_PROJECT,
            "expires_after": EXPIRES_AFTER,  # a project with differences remains for inspection
        }
        start = {"settings": settings, "scenario": changed.scenario, "now": steps[0].at}
        self._start = {**evidence["snapshot"], **INITIAL_STATE, **start}
        created = server.call("POST", "/control/projects/", {**settings, "clock": f"frozen@{steps[0].at}"})
        self._project_id: str = created["project_id"]
        self._sandbox = SandboxClient(server.base_url, created["api_key"])

    @contextmanager
    def cleanup(self) -> Iterator[None]:
        """Delete the project at the end, unless the replay has differences to inspect."""
        try:
            yield
        finally:
            if not self._differences:
                self._sandbox.delete_project()
            self._sandbox.close()

    def run(self) -> ReplayOutcome:
        """Run each step at its recorded time, and compare the results.

        The replay starts with the identifier counters of the evidence, even if a reset preceded it.
        """
        self._sandbox.call("PUT", "/control/state/", self._start)
        self._sandbox.call("PUT", "/control/faults/", NO_WEBHOOKS)
        differences = self._differences
        for number, step in enumerate(self._steps, 1):
            self._advance(step.at)
            differences += [f"step {number}, {step.label}: {difference}" for difference in step.run(self)]
        self._advance(self._evidence["clock"]["now"])
        differences += self._compare_orders()
        return ReplayOutcome(differences, self._skipped, self._project_id, len(self._steps))

    def request(self, entry: Evidence) -> Iterator[str]:
        """Repeat a request by the shop."""
        raw = self._request_body(entry)
        problem = self._missing_record(entry) or _reason_to_skip(entry, raw)
        if problem is not None:
            self._skipped.append(f"{entry['method']} {entry['path']} {problem}")
            if problem != HAD_FAULT or not _was_processed(entry["fault"]):
                return
        path = self._translate(f"{entry['path']}?{entry['query']}" if entry["query"] else entry["path"])
        headers = self._request_headers(entry["headers"]["request"])
        status, body, etag = self._sandbox.exchange_raw(entry["method"], path, raw, headers)
        if etag is not None:
            self._etags[entry["headers"]["response"].get(ETAG, "")] = etag
        if problem is None:
            yield from self._compare_response(entry, status, body)
        elif status < REFUSED_STATUS and entry["path"].strip("/").endswith(CREATING_PATHS):
            self._map_unreceived_ids(entry["order_id"], body)

    def _map_unreceived_ids(self, order_id: str, created: Evidence) -> None:
        """Map the identifiers of an order, or of its next refund, whose response the shop never received."""
        known = {order["id"]: order for order in self._evidence["snapshot"]["orders"]}
        order = known.get(order_id, {"refunds": ()})
        ids = [order_id, *(refund["refund_id"] for refund in order["refunds"])]
        unreceived = next((each for each in ids if each in known and each not in self._ids), None)
        if unreceived is not None:
            pairs = zip(
                [known[unreceived], *known[unreceived]["transactions"]],
                [created, *created["transactions"]],
                strict=False,
            )
            self._ids |= {before["id"]: now["id"] for before, now in pairs}

    def _missing_record(self, entry: Evidence) -> str | None:
        """Return the reason to skip a call that uses a record older than the evidence."""
        text = f"{entry['path']} {json.dumps(entry['request'])}"
        named = {each[0] for each in IDENTIFIER.finditer(text)}
        return MISSING_RECORD if named & self._earlier_ids - self._ids.keys() else None

    def _compare_response(self, entry: Evidence, status: int, body: Any) -> Iterator[str]:
        if status != entry["status"]:
            yield f"answered {status} instead of {entry['status']}"
        elif isinstance(body, dict | list) and isinstance(entry["response"], dict | list):
            yield from list(self._compare(entry["response"], body, ""))[:DIFFERENCES_MAX]

    def _request_body(self, entry: Evidence) -> bytes:
        """Return the original body with the identifiers of the replay and placeholders for card codes."""
        if "raw" not in entry:  # evidence from an older version
            sent = entry["request"]
            return b"" if sent is None else json.dumps(self._translate(sent)).encode()
        text = b64decode(entry["raw"]).decode("latin-1")
        if entry["status"] is None or entry["status"] < REFUSED_STATUS:
            text = CARD_CODE.sub(CARD_CODE_PLACEHOLDER, text)
        return str(self._translate(text)).encode("latin-1")

    def _request_headers(self, sent: Mapping[str, str]) -> dict[str, str]:
        """Return the request headers except those of the connection, with the entity tags of the replay."""
        headers = {name: value for name, value in sent.items() if name.lower() not in CONNECTION_HEADERS}
        for name, value in headers.items():
            if name.lower() in CONDITIONAL_HEADERS:
                headers[name] = TAG.sub(lambda tag: self._etags.get(tag[0], tag[0]), value)
        return headers

    def change(self, kind: str, changed: Evidence) -> Iterator[str]:
        """Repeat a change to the settings or the scenario."""
        if kind == SCENARIO:
            self._put_scenario(changed)
        else:
            self._sandbox.call("PATCH", "/control/project/", changed)
        return iter(())

    def _put_scenario(self, scenario: Evidence) -> None:
        if scenario.get("name") == DEFAULT_NAME:
            self._sandbox.call("DELETE", "/control/scenario/")
        else:
            self._sandbox.call("PUT", "/control/scenario/", scenario)

    def act(self, action: Evidence) -> Iterator[str]:
        """Repeat an action by a customer, a bank or the merchant."""
        order_id = self._ids.get(action["order_id"])
        if action["action"] in CREATING_ACTIONS:
            yield from self._create(action)
            return
        if order_id is None:
            self._skipped.append(
                f"{action['actor']} {action['action']} of {action['order_id']} {MISSING_RECORD}"
            )
            return
        details = {
            "amount" if name == "amount_cents" else name: value for name, value in action["how"].items()
        }
        if action["actor"] == "merchant":
            status, answer = self._replay_action(order_id, action["action"], details)
        else:
            body = {"actor": action["actor"], "action": action["action"], **details}
            status, answer = self._sandbox.exchange("POST", f"/control/orders/{order_id}/act/", body)
        if status >= REFUSED_STATUS:
            yield f"is no longer possible: {answer['error']['value']}"

    def _create(self, action: Evidence) -> Iterator[str]:
        """Create an order as a test order, or by a scan."""
        details = action["how"]
        if action["action"] == "create":
            status, answer = self._sandbox.exchange("POST", "/v1/orders/", details["order"])
        else:
            body = {"amount": details["amount_cents"]} if details.get("amount_cents") else {}
            body |= {"issuer_id": details["issuer_id"]} if details.get("issuer_id") else {}
            code = self._ids.get(details["bankqr_id"], details["bankqr_id"])
            status, answer = self._sandbox.exchange("POST", f"/control/bankqr/{code}/scan/", body)
        if status >= REFUSED_STATUS:
            yield f"is no longer possible: {answer['error']['value']}"
        else:
            self._ids[action["order_id"]] = answer["id"]

    def _replay_action(self, order_id: str, action: str, details: Evidence) -> tuple[int, Any]:
        if action == "cancel":
            return self._sandbox.exchange("DELETE", f"/v1/orders/{order_id}/")
        if action == "refund":
            return self._sandbox.exchange("POST", f"/v1/orders/{order_id}/refunds/", dict(details))
        order = self._sandbox.call("GET", f"/v1/orders/{order_id}/")
        path = f"/v1/orders/{order_id}/transactions/{order['transactions'][-1]['id']}/"
        return self._sandbox.exchange("POST", f"{path}{MANUAL_ACTION_PATHS[action]}", dict(details))

    def _advance(self, to: str) -> None:
        if to > self._sandbox.call("GET", "/control/clock/")["now"]:
            self._sandbox.call("POST", "/control/clock/advance/", {"to": to})

    def _translate(self, value: Any) -> Any:
        """Return the value with the identifiers of the replay."""
        if isinstance(value, str):
            return IDENTIFIER.sub(lambda evidence: self._ids.get(evidence[0], evidence[0]), value)
        if isinstance(value, dict):
            return {key: self._translate(inner) for key, inner in value.items()}
        return [self._translate(item) for item in value] if isinstance(value, list) else value

    def _compare(self, before: Any, now: Any, path: str) -> Iterator[str]:
        """Yield the differences, except consistently mapped identifiers."""
        if isinstance(before, dict) and isinstance(now, dict):
            for key in before.keys() | now.keys():
                if key not in IGNORED_FIELDS:
                    yield from self._compare(before.get(key), now.get(key), f"{path}.{key}".lstrip("."))
        elif isinstance(before, list) and isinstance(now, list) and len(before) == len(now):
            for index, pair in enumerate(zip(before, now, strict=True)):
                yield from self._compare(*pair, f"{path}[{index}]")
        else:
            yield from self._compare_values(before, now, path)

    def _compare_values(self, before: Any, now: Any, path: str) -> Iterator[str]:
        if before == MASK:
            return
        if isinstance(before, str) and isinstance(now, str) and IDENTIFIER.fullmatch(before):
            if self._ids.setdefault(before, now) != now:
                yield f"{path} is {now} instead of {self._ids[before]}"
        elif self._translate(before) != now and not _is_same_time(before, now):
            yield f"{path} is {now!r} instead of {before!r}"

    def _compare_orders(self) -> Iterator[str]:
        """Yield the orders whose final statuses differ."""
        for order in self._evidence["snapshot"]["orders"]:
            order_id = self._ids.get(order["id"])
            if order_id is None:
                continue
            status = self._sandbox.call("GET", f"/control/orders/{order_id}/")["order"]["status"]
            if status != order["status"]:
                yield f"order {order['id']} ends as {status} instead of {order['status']}"


def _record_ids(snapshot: Evidence) -> set[str]:
    """Return the identifiers of orders, attempts, stored cards and QR codes."""
    orders = snapshot["orders"]
    records = [
        *orders,
        *(each for order in orders for each in order["transactions"]),
        *snapshot["qr_requests"],
    ]
    return {each["id"] for each in records} | {each["vault_token"] for each in snapshot["credentials"]}


def _reason_to_skip(entry: Evidence, raw: bytes) -> str | None:
    """Return the reason not to repeat a call or compare its response, if any."""
    if entry["fault"] is not None or entry["status"] is None:
        return HAD_FAULT
    if entry["status"] >= REFUSED_STATUS and CARD_CODE.search(raw.decode("latin-1")):
        return "was refused with a card code, which the journal does not store"
    sent = entry["headers"]["request"].get("Content-Length", "")
    if sent.isascii() and sent.isdigit() and int(sent) > JOURNAL_BODY_BYTES:
        return "had a body too large to record"
    return None


def _was_processed(fault: Evidence | None) -> bool:
    """Return whether a request was processed despite its fault, so that the replay must repeat it."""
    return (
        fault is None
        or fault.get("phase") == PHASE_AFTER
        or not any(each.key in fault for each in PREVENTING_EFFECTS)
    )


def _is_same_time(before: Any, now: Any) -> bool:
    try:
        return abs(datetime.fromisoformat(before) - datetime.fromisoformat(now)) < TIME_TOLERANCE
    except (TypeError, ValueError):
        return False
