"""Plays the evidence of an order again, in a fresh project, and says where it goes differently."""

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
from payment_sandbox.projects.default_scenario import DEFAULT
from payment_sandbox.projects.journal import CHOICES_MAX, JOURNAL_BODY_BYTES, NOT_REPLAYED
from payment_sandbox.scenarios.effects import AFTER, ErrorStatus, Hang, RateLimit, Reset, Silence

Recorded = Mapping[str, Any]
"""An object of the evidence."""
METHOD: Final = re.compile(r"[A-Z]{1,20}")
MERCHANT_API: Final = "/v1/"  # a path from a file must not lead to another host
REPLAY: Final = "replay"  # the name of its project
EXPIRES_AFTER: Final = "P7D"
ADDRESSES: Final = ("payment_url", "order_url", "qr_url", "issuer_authentication_url")
NOT_COMPARED: Final = (*ADDRESSES, "beneficiary", "events", "client")
BY_HAND: Final = {"capture": "captures/amount/", "void": "voids/amount/"}
NO_WEBHOOKS: Final = {"webhooks": [{"then": {"drop": True}}]}
EMPTY: Final[Recorded] = {
    **dict.fromkeys(("agenda", "orders", "credentials", "qr_requests", "deliveries", "decisions"), ()),
    **dict.fromkeys(("rule_uses", "scenario_faults", "fault_uses", "swapped"), ()),
    "faults": {"faults": [], "webhooks": []},
    "id_counts": {},
    "sequence": 0,
    "deliveries_dropped": 0,
    "clock_mode": "frozen",
    "clock_rate": 1.0,
}
"""What a snapshot of a project holds before anything has happened in it."""
CREATING: Final = ("create", "scan")
REFUSED: Final = 400
SCENARIO: Final = "scenario"
ETAG: Final = "ETag"
IDENTIFIER: Final = re.compile(rf"{UUID.pattern}|\b[0-9a-f]{{32}}\b")
"""An identifier, or the token of a stored card."""
TAG: Final = re.compile(r'"[^"]*"')
CONDITIONS: Final = ("if-match", "if-none-match")
OF_A_CONNECTION: Final = (
    *("host", "authorization", "content-length", "transfer-encoding", "connection", "accept-encoding"),
    *("expect", "user-agent"),
)
FAULT: Final = "had a fault"
MAKING: Final = ("/orders", "/refunds")
PREVENTING: Final = (ErrorStatus, RateLimit, Hang, Reset, Silence)
"""The effects of faults that come instead of the request, unless their phase is after it."""
OF_EARLIER: Final = "uses what was made before the evidence begins"
CODE: Final = re.compile(rf'("cvc"\s*:\s*)"{re.escape(MASK)}"')
STAND_IN: Final = r'\1"123"'  # for a card code, of which the journal keeps nothing
SAME_TIME: Final = timedelta(seconds=1)  # a running clock goes on while a request is handled
DIFFERENCES_MAX: Final = 5  # of one response


class EvidenceRefused(ValueError):
    """The file is not evidence that can be played."""


class ReplayStep(NamedTuple):
    """Something that was done, by the shop or by somebody else, with its sandbox time."""

    real_at: str
    at: str
    what: str
    run: "Callable[[Replay], Iterator[str]]"


class ReplayOutcome(NamedTuple):
    """How a replay went: the differences, what could not be played, and the project that it made."""

    differences: list[str]
    skipped: list[str]
    project_id: str
    steps: int


def replay(server: SandboxClient, evidence: Any) -> ReplayOutcome:
    """Play evidence in a new project; no shop gets its webhooks.

    Raises:
        EvidenceRefused: it is something else, or nothing in it can be played.
        SandboxError: the server refuses the project, its scenario or the clock.
    """
    checked = _checked(evidence)
    try:
        chosen, steps = _chosen(checked), list(_steps(checked))
        if not steps:
            raise EvidenceRefused("there is no request or action in it")
        steps = sorted([*chosen.steps[::-1], *steps], key=lambda step: step.real_at)
        replay = Replay(server, checked, chosen, steps)
        with replay.kept_if_different():
            return replay.play()
    except EvidenceRefused:
        raise
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise EvidenceRefused(f"it is malformed: {type(error).__name__} {error}") from error


def _checked(evidence: Any) -> Recorded:
    if not isinstance(evidence, dict) or evidence.get("format") != EVIDENCE_FORMAT:
        raise EvidenceRefused(f"it is not evidence of the dashboard: its format is not {EVIDENCE_FORMAT!r}")
    missing = [name for name in ("journal", "actions", "snapshot", "clock") if name not in evidence]
    if missing:
        raise EvidenceRefused(f"it has no {', '.join(missing)}")
    return dict(evidence)


class RecordedChoices(NamedTuple):
    """What was chosen at the beginning, and the steps at which something else was."""

    settings: Recorded
    scenario: Recorded
    steps: Sequence[ReplayStep]
    unknown: Sequence[str]


def _chosen(evidence: Recorded) -> RecordedChoices:
    """Settings and scenario of each step, from what they are in the end and what was in force before."""
    settings, scenario = dict(evidence["snapshot"]["settings"]), evidence["snapshot"][SCENARIO]
    choices = evidence.get("choices", ())
    steps, unknown = [], []
    if len(choices) >= CHOICES_MAX:
        unknown.append(f"what settings and scenario were before {choices[0]['at']} is not known")
    for choice in reversed(choices):
        kind, before = choice["kind"], choice["before"]
        if before is None:
            unknown.append(f"what the {kind} was before {choice['at']} was too long to be kept")
            continue
        chosen = scenario
        if kind != SCENARIO:
            chosen = {name: settings[name] for name in before}
        run = partial(Replay.choose, kind=kind, chosen=chosen)
        steps.append(ReplayStep(choice["real_at"], choice["at"], f"choosing {kind}", run))
        if kind == SCENARIO:
            scenario = before
        else:
            settings |= before
    return RecordedChoices(settings, scenario, steps, unknown)


def _steps(evidence: Recorded) -> Iterator[ReplayStep]:
    for entry in evidence["journal"]:
        what = f"{entry['method']} {entry['path']}"
        if not METHOD.fullmatch(entry["method"]) or not entry["path"].startswith(MERCHANT_API):
            raise EvidenceRefused(f"{what} is not a request to the merchant API")
        yield ReplayStep(entry["real_at"], entry["at"], what, partial(Replay.request, entry=entry))
    for taken in evidence["actions"]:
        if taken["via"] != "scenario" and taken["action"] != "return" and taken["order_id"] is not None:
            what = f"{taken['actor']} {taken['action']}"
            yield ReplayStep(taken["real_at"], taken["at"], what, partial(Replay.act, taken=taken))


class Replay:
    """One replay: its project, and which identifiers stand for which."""

    def __init__(
        self,
        server: SandboxClient,
        evidence: Recorded,
        chosen: RecordedChoices,
        steps: list[ReplayStep],
    ) -> None:
        self._evidence = evidence
        self._steps = steps
        self._ids: dict[str, str] = {}  # of the evidence -> of the replay
        self._etags: dict[str, str] = {}  # the same
        self._skipped = list(chosen.unknown)
        self._differences: list[str] = []
        self._earlier = _identifiers(evidence["snapshot"])
        settings = {
            **chosen.settings,
            **dict.fromkeys(NOT_REPLAYED),
            "name": REPLAY,
            "expires_after": EXPIRES_AFTER,  # it stays if it differs
        }
        begin = {"settings": settings, "scenario": chosen.scenario, "now": steps[0].at}
        self._begin = {**evidence["snapshot"], **EMPTY, **begin}
        made = server.call("POST", "/control/projects/", {**settings, "clock": f"frozen@{steps[0].at}"})
        self._project_id: str = made["project_id"]
        self._sandbox = SandboxClient(server.base_url, made["api_key"])

    @contextmanager
    def kept_if_different(self) -> Iterator[None]:
        """Delete the project afterwards, unless there is something to look at in it."""
        try:
            yield
        finally:
            if not self._differences:
                self._sandbox.delete_project()
            self._sandbox.close()

    def play(self) -> ReplayOutcome:
        """Do everything at its own time, and compare.

        The replay begins with the identifiers with which the evidence begins, also after a reset.
        """
        self._sandbox.call("PUT", "/control/state/", self._begin)
        self._sandbox.call("PUT", "/control/faults/", NO_WEBHOOKS)
        differences = self._differences
        for number, step in enumerate(self._steps, 1):
            self._advance(step.at)
            differences += [f"step {number}, {step.what}: {difference}" for difference in step.run(self)]
        self._advance(self._evidence["clock"]["now"])
        differences += self._orders()
        return ReplayOutcome(differences, self._skipped, self._project_id, len(self._steps))

    def request(self, entry: Recorded) -> Iterator[str]:
        """Make a request of the shop again."""
        raw = self._raw(entry)
        problem = self._of_earlier(entry) or _why_not(entry, raw)
        if problem is not None:
            self._skipped.append(f"{entry['method']} {entry['path']} {problem}")
            if problem != FAULT or not _is_done(entry["fault"]):
                return
        path = self._translated(f"{entry['path']}?{entry['query']}" if entry["query"] else entry["path"])
        headers = self._headers(entry["headers"]["request"])
        status, body, etag = self._sandbox.exchange_raw(entry["method"], path, raw, headers)
        if etag is not None:
            self._etags[entry["headers"]["response"].get(ETAG, "")] = etag
        if problem is None:
            yield from self._differences_of(entry, status, body)
        elif status < REFUSED and entry["path"].strip("/").endswith(MAKING):
            self._learn_lost(entry["order_id"], body)

    def _learn_lost(self, order_id: str, made: Recorded) -> None:
        """Learn the identifiers of an order, or of its next refund, from a response that was lost."""
        known = {order["id"]: order for order in self._evidence["snapshot"]["orders"]}
        order = known.get(order_id, {"refunds": ()})
        ids = [order_id, *(refund["refund_id"] for refund in order["refunds"])]
        lost = next((each for each in ids if each in known and each not in self._ids), None)
        if lost is not None:
            pairs = zip(
                [known[lost], *known[lost]["transactions"]], [made, *made["transactions"]], strict=False
            )
            self._ids |= {before["id"]: now["id"] for before, now in pairs}

    def _of_earlier(self, entry: Recorded) -> str | None:
        """Whether a call uses what none of the steps has made, since the evidence begins after that."""
        text = f"{entry['path']} {json.dumps(entry['request'])}"
        named = {each[0] for each in IDENTIFIER.finditer(text)}
        return OF_EARLIER if named & self._earlier - self._ids.keys() else None

    def _differences_of(self, entry: Recorded, status: int, body: Any) -> Iterator[str]:
        if status != entry["status"]:
            yield f"answered {status} instead of {entry['status']}"
        elif isinstance(body, dict | list) and isinstance(entry["response"], dict | list):
            yield from list(self._compare(entry["response"], body, ""))[:DIFFERENCES_MAX]

    def _raw(self, entry: Recorded) -> bytes:
        """The body as it was sent, with the identifiers of the replay and stand-ins for card codes."""
        if "raw" not in entry:  # it was saved by an older version
            sent = entry["request"]
            return b"" if sent is None else json.dumps(self._translated(sent)).encode()
        text = b64decode(entry["raw"]).decode("latin-1")
        if entry["status"] is None or entry["status"] < REFUSED:
            text = CODE.sub(STAND_IN, text)
        return str(self._translated(text)).encode("latin-1")

    def _headers(self, sent: Mapping[str, str]) -> dict[str, str]:
        """The headers that say something about the call, with the entity tags of the replay."""
        given = {name: value for name, value in sent.items() if name.lower() not in OF_A_CONNECTION}
        for name, value in given.items():
            if name.lower() in CONDITIONS:
                given[name] = TAG.sub(lambda tag: self._etags.get(tag[0], tag[0]), value)
        return given

    def choose(self, kind: str, chosen: Recorded) -> Iterator[str]:
        """Choose settings or a scenario again; no webhook is sent, wherever they should go."""
        if kind == SCENARIO:
            self._put_scenario(chosen)
        else:
            self._sandbox.call("PATCH", "/control/project/", chosen)
        return iter(())

    def _put_scenario(self, scenario: Recorded) -> None:
        if scenario.get("name") == DEFAULT:
            self._sandbox.call("DELETE", "/control/scenario/")
        else:
            self._sandbox.call("PUT", "/control/scenario/", scenario)

    def act(self, taken: Recorded) -> Iterator[str]:
        """Let somebody act again."""
        order_id = self._ids.get(taken["order_id"])
        if taken["action"] in CREATING:
            yield from self._create(taken)
            return
        if order_id is None:
            self._skipped.append(f"{taken['actor']} {taken['action']} of {taken['order_id']} {OF_EARLIER}")
            return
        how = {"amount" if name == "amount_cents" else name: value for name, value in taken["how"].items()}
        if taken["actor"] == "merchant":
            status, answer = self._by_hand(order_id, taken["action"], how)
        else:
            asked = {"actor": taken["actor"], "action": taken["action"], **how}
            status, answer = self._sandbox.exchange("POST", f"/control/orders/{order_id}/act/", asked)
        if status >= REFUSED:
            yield f"is not possible any more: {answer['error']['value']}"

    def _create(self, taken: Recorded) -> Iterator[str]:
        """Create an order as a test order, or by a scan."""
        how = taken["how"]
        if taken["action"] == "create":
            status, answer = self._sandbox.exchange("POST", "/v1/orders/", how["order"])
        else:
            asked = {"amount": how["amount_cents"]} if how.get("amount_cents") else {}
            asked |= {"issuer_id": how["issuer_id"]} if how.get("issuer_id") else {}
            code = self._ids.get(how["bankqr_id"], how["bankqr_id"])
            status, answer = self._sandbox.exchange("POST", f"/control/bankqr/{code}/scan/", asked)
        if status >= REFUSED:
            yield f"is not possible any more: {answer['error']['value']}"
        else:
            self._ids[taken["order_id"]] = answer["id"]

    def _by_hand(self, order_id: str, action: str, how: Recorded) -> tuple[int, Any]:
        if action == "cancel":
            return self._sandbox.exchange("DELETE", f"/v1/orders/{order_id}/")
        if action == "refund":
            return self._sandbox.exchange("POST", f"/v1/orders/{order_id}/refunds/", dict(how))
        order = self._sandbox.call("GET", f"/v1/orders/{order_id}/")
        place = f"/v1/orders/{order_id}/transactions/{order['transactions'][-1]['id']}/{BY_HAND[action]}"
        return self._sandbox.exchange("POST", place, dict(how))

    def _advance(self, to: str) -> None:
        if to > self._sandbox.call("GET", "/control/clock/")["now"]:
            self._sandbox.call("POST", "/control/clock/advance/", {"to": to})

    def _translated(self, value: Any) -> Any:
        """The value with the identifiers of the replay."""
        if isinstance(value, str):
            return IDENTIFIER.sub(lambda evidence: self._ids.get(evidence[0], evidence[0]), value)
        if isinstance(value, dict):
            return {key: self._translated(inner) for key, inner in value.items()}
        return [self._translated(item) for item in value] if isinstance(value, list) else value

    def _compare(self, before: Any, now: Any, path: str) -> Iterator[str]:
        """What differs; identifiers that take the place of others do not."""
        if isinstance(before, dict) and isinstance(now, dict):
            for key in before.keys() | now.keys():
                if key not in NOT_COMPARED:
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
        elif self._translated(before) != now and not _is_same_time(before, now):
            yield f"{path} is {now!r} instead of {before!r}"

    def _orders(self) -> Iterator[str]:
        """The orders that have another status in the end."""
        for order in self._evidence["snapshot"]["orders"]:
            order_id = self._ids.get(order["id"])
            if order_id is None:
                continue
            status = self._sandbox.call("GET", f"/control/orders/{order_id}/")["order"]["status"]
            if status != order["status"]:
                yield f"order {order['id']} is {status} in the end instead of {order['status']}"


def _identifiers(snapshot: Recorded) -> set[str]:
    """The identifiers of orders, attempts, stored cards and QR codes."""
    orders = snapshot["orders"]
    records = [
        *orders,
        *(each for order in orders for each in order["transactions"]),
        *snapshot["qr_requests"],
    ]
    return {each["id"] for each in records} | {each["vault_token"] for each in snapshot["credentials"]}


def _why_not(entry: Recorded, raw: bytes) -> str | None:
    """Why a call cannot be made again as it was, or not be compared."""
    if entry["fault"] is not None or entry["status"] is None:
        return FAULT
    if entry["status"] >= REFUSED and CODE.search(raw.decode("latin-1")):
        return "was refused with a card code, which the journal does not keep"
    sent = entry["headers"]["request"].get("Content-Length", "")
    if sent.isascii() and sent.isdigit() and int(sent) > JOURNAL_BODY_BYTES:
        return "had a body that was too long to be kept"
    return None


def _is_done(fault: Recorded | None) -> bool:
    """Whether a request was processed in spite of its fault, so that a replay must make it, too."""
    return fault is None or fault.get("phase") == AFTER or not any(each.key in fault for each in PREVENTING)


def _is_same_time(before: Any, now: Any) -> bool:
    try:
        return abs(datetime.fromisoformat(before) - datetime.fromisoformat(now)) < SAME_TIME
    except (TypeError, ValueError):
        return False
