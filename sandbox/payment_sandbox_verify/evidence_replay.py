"""Evidence of an order as a recording: replayed in a new project of a sandbox, and compared exactly."""

import json
import re
from base64 import b64decode
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from payment_sandbox.kernel.masking import MASK
from payment_sandbox.operations.history import EVIDENCE_FORMAT
from payment_sandbox.projects.default_scenario import DEFAULT_NAME
from payment_sandbox.projects.journal import CHOICES_MAX, JOURNAL_BODY_BYTES, SETTINGS_NOT_REPLAYED
from payment_sandbox.scenarios.effects import PHASE_AFTER, ErrorStatus, Hang, RateLimit, Reset, Silence
from payment_sandbox.web.error_bodies import MERCHANT_PATHS
from payment_sandbox_verify.answer import MISSING, ServiceAnswer
from payment_sandbox_verify.differences import Leaf, is_alike, leaves
from payment_sandbox_verify.normalising import Names, ShownTime
from payment_sandbox_verify.player import Observation, Played
from payment_sandbox_verify.recording import NO_WEBHOOKS, WORD, Recording, RecordingRefused
from payment_sandbox_verify.steps import ORDERS_PATH, ApiCall, Control, ConversationStep
from payment_sandbox_verify.verifying import sandbox_player

if TYPE_CHECKING:
    from payment_sandbox.client.client import SandboxClient

Evidence = Mapping[str, Any]
METHOD_PATTERN: Final = re.compile(r"[A-Z]{1,20}")
REPLAY_PROJECT: Final = "replay"  # the name of the replay's project
EXPIRES_AFTER: Final = "P7D"
MANUAL_ACTION_PATHS: Final = {"capture": "captures/amount/", "void": "voids/amount/"}
INITIAL_STATE: Final[Evidence] = {
    **dict.fromkeys(
        ("agenda", "orders", "credentials", "qr_requests", "deliveries", "decisions", "unsent"), ()
    ),
    **dict.fromkeys(("rule_uses", "scenario_faults", "fault_uses", "swapped"), ()),
    "faults": {"faults": [], "webhooks": []},
    "id_counts": {},
    "sequence": 0,
    "deliveries_dropped": 0,
    "clock_mode": "frozen",
    "clock_rate": 1.0,
}
"""The history and state that the snapshot of a new project contains."""
REFUSED_STATUS: Final = 400
NOT_COMPARED: Final = 0  # the status of a response that the shop never received
SCENARIO: Final = "scenario"
CONNECTION_HEADERS: Final = (
    *("host", "authorization", "content-length", "transfer-encoding", "connection", "accept-encoding"),
    *("expect", "user-agent"),
)
NO_MEDIA_TYPE: Final = {"Content-Type": ""}  # unless one was recorded
HAD_FAULT: Final = "had a fault"
CREATING_PATHS: Final = ("/orders", "/refunds")
PREVENTING_EFFECTS: Final = (ErrorStatus, RateLimit, Hang, Reset, Silence)
"""The fault effects that prevent a request from being processed, unless their phase is ``after``."""
MISSING_RECORD: Final = "uses a record from before the start of the evidence"
CARD_CODE: Final = re.compile(rf'("cvc"\s*:\s*)"{re.escape(MASK)}"')
LATE_SECONDS: Final = 0.1  # a running clock advances during a request
UNIX_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)  # where the times of both plays begin
DIFFERENCES_MAX: Final = 5  # the number reported per response


class ReplayOutcome(NamedTuple):
    """The result of a replay: the differences, the skipped steps, and the project created for it."""

    differences: list[str]
    skipped: list[str]
    project_id: str
    steps: int


def replay(server: "SandboxClient", evidence: Any) -> ReplayOutcome:
    """Replay evidence in a new project, without delivering webhooks.

    A project without differences is deleted.

    Raises:
        RecordingRefused: the document is not evidence, or has no step to replay.
        NotVerified: the server has stopped responding.
        SandboxError: the server refuses the project, its scenario or the clock.
    """
    document = _validate(evidence)
    try:
        recorded = RecordedEvidence(document)
        start = _start(document, recorded)
    except RecordingRefused:
        raise
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise RecordingRefused(f"malformed: {type(error).__name__} {error}") from error
    project = server.create_project(**start["settings"], clock=f"frozen@{start['now']}")
    project_id, differences = project.project()["project_id"], []
    try:
        project.call("PUT", "/control/state/", start)
        project.call("PUT", "/control/faults/", NO_WEBHOOKS)
        played = recorded.recording.played(REPLAY_PROJECT)
        differences = list(_differences(played, sandbox_player(project).play(played.scene)))
    finally:
        if not differences:
            project.delete_project()
    return ReplayOutcome(differences, recorded.skipped, project_id, len(recorded.steps))


def _validate(evidence: Any) -> Evidence:
    if not isinstance(evidence, dict) or evidence.get("format") != EVIDENCE_FORMAT:
        raise RecordingRefused(f"not evidence from the dashboard: its format is not {EVIDENCE_FORMAT!r}")
    missing = [name for name in ("journal", "actions", "snapshot", "clock") if name not in evidence]
    if missing:
        raise RecordingRefused(f"it has no {', '.join(missing)}")
    return dict(evidence)


def _start(evidence: Evidence, recorded: "RecordedEvidence") -> dict[str, Any]:
    """Return the state of a project before the first step.

    It has the identifier counters of the evidence, even if a reset preceded it.
    """
    settings = {
        **recorded.settings,
        **dict.fromkeys(SETTINGS_NOT_REPLAYED),
        "name": REPLAY_PROJECT,
        "expires_after": EXPIRES_AFTER,  # a project with differences remains for inspection
    }
    start = {"settings": settings, SCENARIO: recorded.scenario, "now": recorded.steps[0].at}
    return {**evidence["snapshot"], **INITIAL_STATE, **start}


class EvidenceStep(NamedTuple):
    """A recorded request, action or change with its sandbox time."""

    real_at: str
    at: str
    label: str
    kind: str
    document: Evidence


class RecordedEvidence:
    """Evidence as a recording, with the settings and the scenario before its first step."""

    def __init__(self, evidence: Evidence) -> None:
        self.recording = Recording()
        self.skipped: list[str] = []
        self._snapshot: Evidence = evidence["snapshot"]
        self._earlier_ids = _record_ids(self._snapshot)
        self.settings, self.scenario = dict(self._snapshot["settings"]), self._snapshot[SCENARIO]
        changes, steps = self._undo_changes(evidence.get("choices", ())), list(_recorded_steps(evidence))
        if not steps:
            raise RecordingRefused("it has no request or action to replay")
        self.steps = sorted([*changes[::-1], *steps], key=lambda step: step.real_at)
        add = {"request": self._add_request, "action": self._add_action, "change": self._add_change}
        for number, step in enumerate(self.steps, 1):
            self.recording.pause_until(datetime.fromisoformat(step.at))
            add[step.kind](step.document, f"step {number}, {step.label}")
        self.recording.pause_until(datetime.fromisoformat(evidence["clock"]["now"]))
        self._add_final_orders()

    def _undo_changes(self, choices: Sequence[Evidence]) -> list[EvidenceStep]:
        """Undo the recorded changes of settings and scenario, newest first, and return them."""
        changes = []
        if len(choices) >= CHOICES_MAX:
            self.skipped.append(f"settings and scenario before {choices[0]['at']} are unknown")
        for choice in reversed(choices):
            kind, before = choice["kind"], choice["before"]
            if before is None:
                self.skipped.append(f"the {kind} before {choice['at']} was too large to record")
                continue
            after = self.scenario if kind == SCENARIO else {name: self.settings[name] for name in before}
            change = {"kind": kind, "after": after}
            changes.append(
                EvidenceStep(choice["real_at"], choice["at"], f"change of {kind}", "change", change)
            )
            if kind == SCENARIO:
                self.scenario = before
            else:
                self.settings |= before
        return changes

    def _add_change(self, change: Evidence, name: str) -> None:
        """Add a change to the settings or the scenario."""
        after = change["after"]
        if change["kind"] != SCENARIO:
            step = Control(method="PATCH", path="/control/project/", body=after, name=name)
        elif after.get("name") == DEFAULT_NAME:
            step = Control(method="DELETE", path="/control/scenario/", name=name)
        else:
            step = Control(method="PUT", path="/control/scenario/", body=after, name=name)
        self.recording.add(step)

    def _add_request(self, entry: Evidence, name: str) -> None:
        """Add a request by the shop; the response of one with a fault is not compared."""
        raw = _request_body(entry)
        problem = self._missing_record(entry) or _reason_to_skip(entry, raw)
        if problem is not None:
            self.skipped.append(f"{entry['method']} {entry['path']} {problem}")
            if problem != HAD_FAULT or not _was_processed(entry["fault"]):
                return
        path = f"{entry['path']}?{entry['query']}" if entry["query"] else entry["path"]
        headers = entry["headers"]
        status = NOT_COMPARED if problem is not None else entry["status"]
        answer = ServiceAnswer(entry["method"], path, None, status, headers["response"], entry["response"])
        answer_name = self.recording.add_call(answer, raw, _request_headers(headers["request"]), name=name)
        if problem is not None and entry["path"].strip("/").endswith(CREATING_PATHS):
            self._learn_unreceived(entry["order_id"], answer_name)

    def _learn_unreceived(self, order_id: str, answer_name: str) -> None:
        """Learn the identifiers of an order, or of its next refund, whose response was lost."""
        known = {order["id"]: order for order in self._snapshot["orders"]}
        order = known.get(order_id, {"refunds": ()})
        ids = [order_id, *(refund["refund_id"] for refund in order["refunds"])]
        references = self.recording.references
        unreceived = next((each for each in ids if each in known and each not in references), None)
        if unreceived is not None:
            transactions = [{"id": each["id"]} for each in known[unreceived]["transactions"]]
            self.recording.learn(answer_name, {"id": unreceived, "transactions": transactions})

    def _missing_record(self, entry: Evidence) -> str | None:
        """Return the reason to skip a call that uses a record older than the evidence."""
        words = WORD.findall(f"{entry['path']} {json.dumps(entry['request'])}")
        named = self._earlier_ids.intersection(words)
        return MISSING_RECORD if named - self.recording.references.keys() else None

    def _add_action(self, action: Evidence, name: str) -> None:
        """Add an action by a customer, a bank or the merchant."""
        details = action["how"]
        if action["action"] in ("create", "scan"):
            self._add_creation(action["order_id"], action["action"], details, name)
            return
        order = self.recording.references.get(action["order_id"])
        if order is None:
            self.skipped.append(
                f"{action['actor']} {action['action']} of {action['order_id']} {MISSING_RECORD}"
            )
            return
        details = {"amount" if key == "amount_cents" else key: value for key, value in details.items()}
        if action["actor"] == "merchant":
            self._add_merchant_action(order, action["action"], details, name)
            return
        body = {"actor": action["actor"], "action": action["action"], **details}
        self.recording.add(Control(method="POST", path=f"/control/orders/{order}/act/", body=body, name=name))

    def _add_creation(self, order_id: str, action: str, details: Evidence, name: str) -> None:
        """Add the creation of an order as a test order, or by a scan."""
        path, body = ORDERS_PATH, details.get("order")
        if action == "scan":
            path = f"/control/bankqr/{self.recording.refer(details['bankqr_id'])}/scan/"
            body = {"amount": details["amount_cents"]} if details.get("amount_cents") else {}
            body |= {"issuer_id": details["issuer_id"]} if details.get("issuer_id") else {}
        saves = self.recording.next_name
        self.recording.add(Control(method="POST", path=path, body=body, saves=saves, name=name))
        self.recording.references[order_id] = f"<<{saves}.id>>"

    def _add_merchant_action(self, order: str, action: str, details: Evidence, name: str) -> None:
        path = f"{ORDERS_PATH}{order}/"
        if action == "cancel":
            self.recording.add(Control(method="DELETE", path=path, name=name))
            return
        suffix = "refunds/"
        if action != "refund":
            read = self.recording.next_name
            self.recording.add(Control(method="GET", path=path, saves=read))
            suffix = f"transactions/<<{read}.transactions[-1].id>>/{MANUAL_ACTION_PATHS[action]}"
        self.recording.add(Control(method="POST", path=f"{path}{suffix}", body=dict(details), name=name))

    def _add_final_orders(self) -> None:
        for order in self._snapshot["orders"]:
            reference = self.recording.references.get(order["id"])
            if reference is not None:
                path, name = f"/control/orders/{reference}/", f"order {order['id']}"
                read = Control(method="GET", path=path, shows="order.status", name=name)
                self.recording.add(read, Observation(shown={"order.status": order["status"]}))


def _recorded_steps(evidence: Evidence) -> Iterator[EvidenceStep]:
    for entry in evidence["journal"]:
        label = f"{entry['method']} {entry['path']}"
        if not METHOD_PATTERN.fullmatch(entry["method"]) or not entry["path"].startswith(MERCHANT_PATHS):
            raise RecordingRefused(f"{label} is not a request to the merchant API")
        yield EvidenceStep(entry["real_at"], entry["at"], label, "request", entry)
    for action in evidence["actions"]:
        if action["via"] != "scenario" and action["action"] != "return" and action["order_id"] is not None:
            label = f"{action['actor']} {action['action']}"
            yield EvidenceStep(action["real_at"], action["at"], label, "action", action)


def _request_body(entry: Evidence) -> bytes:
    """Return the original body with placeholders for card codes."""
    if "raw" not in entry:  # evidence from an older version
        return b"" if entry["request"] is None else json.dumps(entry["request"]).encode()
    text = b64decode(entry["raw"]).decode("latin-1")
    if entry["status"] is None or entry["status"] < REFUSED_STATUS:
        text = CARD_CODE.sub(r'\1"123"', text)  # the journal never stores the code
    return text.encode("latin-1")


def _request_headers(sent: Mapping[str, str]) -> dict[str, str]:
    """Return the request headers except those of the connection.

    Raises:
        ValueError: a value cannot be sent.
    """
    headers = {name: value for name, value in sent.items() if name.lower() not in CONNECTION_HEADERS}
    for name, value in headers.items():
        if {*b"\r\n"} & {*value.encode("latin-1")}:
            raise ValueError(f"the header {name} has a line end")
    return {**NO_MEDIA_TYPE, **headers}


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


class ExactNames(Names):
    """Names for identifiers only, because a replay has the same references, accounts and cards."""

    identifier_keys = ("id", "vault_token")
    own_texts = ()
    own_values = ("beneficiary", "client")  # the project's name, and the headers of the connection


def _differences(recorded: Played, replayed: Played) -> Iterator[str]:
    """Yield the differences, except consistently mapped identifiers."""
    names = ExactNames(UNIX_EPOCH), ExactNames(UNIX_EPOCH)
    for number, step in enumerate(recorded.scene.steps):
        before, now = recorded.observations[number], replayed.observations[number]
        for each in names:
            each.begin_step(f"step {number}")
        if not step.name:
            continue
        if now.problem:
            yield f"{step.name}: is no longer possible: {now.problem}"
        elif isinstance(step, ApiCall):
            answers = (
                list(_compare_answers(before, now, names)) if before.answer.status != NOT_COMPARED else []
            )
            yield from (f"{step.name}: {difference}" for difference in answers[:DIFFERENCES_MAX])
        else:
            yield from _compare_shown(step, before, now)


def _compare_shown(step: ConversationStep, before: Observation, now: Observation) -> Iterator[str]:
    if "problem" in now.shown:
        yield f"{step.name}: is no longer possible: {now.shown['problem']}"
    elif now.shown != before.shown:
        (ended,), (recorded,) = now.shown.values(), before.shown.values()
        yield f"{step.name} ends as {ended} instead of {recorded}"


def _compare_answers(before: Observation, now: Observation, names: tuple[Names, Names]) -> Iterator[str]:
    bodies = before.answer.data, now.answer.data
    if now.answer.status != before.answer.status:
        yield f"answered {now.answer.status} instead of {before.answer.status}"
    elif all(isinstance(body, dict | list) for body in bodies):
        for leaf in leaves(*(each.normalise(body) for each, body in zip(names, bodies, strict=True))):
            if not _is_same(leaf):
                yield f"{leaf.path} is {leaf.ours!r} instead of {leaf.theirs!r}"


def _is_same(leaf: Leaf) -> bool:
    before, now = leaf.theirs, leaf.ours
    if isinstance(before, ShownTime) and isinstance(now, ShownTime):
        return is_alike(leaf, LATE_SECONDS)
    if all(value in (None, MISSING) for value in (before, now)):
        return True
    return before == MASK or (type(before) is type(now) and bool(before == now))
