"""Plays recorded calls in the sandbox, and compares the answers field by field."""

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from payment_sandbox.client.replaying import NO_WEBHOOKS
from payment_sandbox.verification.answer import MISSING, Answer, value_at
from payment_sandbox.verification.checks import REFUSED, Check, holds, shown
from payment_sandbox.verification.differences import EXPLAIN
from payment_sandbox.verification.har import Recorded
from payment_sandbox.verification.places import rule_of_beginning, rule_of_call, rule_of_field

if TYPE_CHECKING:
    from payment_sandbox.client.client import SandboxClient
    from payment_sandbox.verification.service import Service

IDENTIFIERS: Final = ("id", "vault_token")
WAYS: Final = {  # what somebody did, if a status was reached
    "processing": ("customer visit",),
    "completed": ("customer pay", "bank credit", "processor settle", "screening approve"),
    "accepted": ("customer pay", "screening approve"),
    "cancelled": ("customer cancel", "screening decline"),
    "error": ("customer fail", "processor fail", "screening error"),
}
EVENTS: Final = re.compile(r"\bevents\[")  # those of a poll in between are not in the recording
VALUES: Final = (  # of other fields it matters that they are there
    *("status", "amount", "currency", "description", "merchant_order_id", "flags", "payment_methods"),
    *("expiration_period", "payment_method", "balance", "credit_debit", "product_type", "channel"),
    *("capture_mode", "is_capturable", "is_fully_captured", "one_click_type", "recurring_type"),
    *("captured", "original", "remaining", "voided", "quantity", "type", "vat_percentage"),
    *("amount_changeable", "one_off", "size"),
)


class Mirror:
    """Makes each recorded call in the sandbox, and lets its customers do what the real ones did."""

    def __init__(self, service: "Service", client: "SandboxClient") -> None:
        self.answers: list[Answer] = []
        self.theirs: list[Answer] = []
        self.skipped: list[str] = []
        self._service = service
        self._client = client
        self._ids: dict[str, str] = {}  # of the recording -> of the sandbox
        self._now: datetime | None = None
        client.call("PUT", "/control/faults/", NO_WEBHOOKS)  # their addresses are those of the real shop

    def play(self, recorded: Sequence[Recorded]) -> Iterator[Check]:
        """Make every call, and compare."""
        for each in recorded:
            yield from self._play(each.at, each.answer)

    def _play(self, at: datetime, theirs: Answer) -> Iterator[Check]:
        unknown = self._unknown(theirs)
        if unknown is not None:
            self.skipped.append(f"{theirs.call}: {unknown} was made before the recording")
            return
        self._pass_time(at)
        self._follow(theirs)
        sent = self._translated(theirs.sent)
        if theirs.is_success:
            self._choose_bank(sent)
        ours = self._service.call(theirs.method, self._translated(theirs.path), sent)
        ours = ours._replace(path=theirs.path, sent=theirs.sent)
        self.answers.append(ours)
        self.theirs.append(theirs)
        yield from self._compared(theirs, ours)

    def _unknown(self, answer: Answer) -> str | None:
        """An identifier in the path that no recorded answer has made known."""
        token = _details(answer.sent).get("vault_token")
        if answer.is_success and token is not None and token not in self._ids:
            return "a stored card"
        parts = answer.path.partition("?")[0].strip("/").split("/")
        if parts[1:2] != ["orders"]:
            return None
        for part in (*parts[2:3], *(parts[4:5] if parts[3:4] == ["transactions"] else ())):
            if part not in self._ids and answer.is_success:
                return str(part)
        return None

    def _pass_time(self, at: datetime) -> None:
        if self._now is not None and at > self._now:
            gap: timedelta = at - self._now
            self._client.clock.advance(gap)
        self._now = at if self._now is None else max(at, self._now)

    def _choose_bank(self, sent: Any) -> None:
        """Take a bank of the sandbox, whose list is another one."""
        details = _details(sent)
        if "issuer_id" in details and details["issuer_id"] not in self._ids.values():
            details["issuer_id"] = self._service.issuer

    def _follow(self, theirs: Answer) -> None:
        """Let happen what has happened in the recording since the last call."""
        order_id = self._ids.get(str(theirs.at("id")))
        if theirs.method != "GET" or order_id is None:
            return
        wanted = theirs.at("status")
        found = self._client.call("GET", f"/control/orders/{order_id}/")
        if found["order"]["status"] == wanted:
            return
        for way in WAYS.get(str(wanted), ()):
            actor, _, action = way.partition(" ")
            if action in found["actions"][actor]:
                self._client.exchange(
                    "POST", f"/control/orders/{order_id}/act/", {"actor": actor, "action": action}
                )
                return

    def _translated(self, value: Any) -> Any:
        """The value with the identifiers of the sandbox."""
        if isinstance(value, str):
            if value in self._ids:
                return self._ids[value]
            parts = [self._ids.get(part, part) for part in value.split("/")]
            return "/".join(parts)
        if isinstance(value, dict):
            return {key: self._translated(inner) for key, inner in value.items()}
        return [self._translated(item) for item in value] if isinstance(value, list) else value

    def _compared(self, theirs: Answer, ours: Answer) -> Iterator[Check]:
        call = rule_of_call(theirs.method, theirs.path)
        if theirs.is_success and ours.is_success:
            yield holds(
                call, theirs.status == ours.status, f"{theirs.call}: {theirs.told}, not {ours.status}"
            )
            yield from self._fields(theirs, ours, theirs.data, ours.data, "")
            return
        rule = ours.headers.get(EXPLAIN, "").partition(" ")[0] or call
        refusal = theirs if theirs.status in REFUSED else None
        how = f"{theirs.call}: {theirs.told}, the sandbox {ours.told}: {ours.at('error.value')}"
        is_so = theirs.is_success == ours.is_success
        yield Check(rule, is_so, "" if is_so else how, refusal)
        if is_so:
            yield holds("SET-08", theirs.status == ours.status, how)

    def _fields(self, theirs: Answer, ours: Answer, there: Any, here: Any, place: str) -> Iterator[Check]:
        """What is answered there and here, value by value."""
        if isinstance(there, dict) and isinstance(here, dict):
            for key, value in here.items():
                self._learn(key, there.get(key), value)
                below = f"{place}.{key}".lstrip(".")
                yield from self._fields(theirs, ours, there.get(key, MISSING), value, below)
        elif isinstance(there, list) and isinstance(here, list):
            for index, (one, other) in enumerate(zip(there, here, strict=False)):
                yield from self._fields(theirs, ours, one, other, f"{place}[{index}]")
        else:
            yield _compared_value(theirs, there, here, place)

    def _learn(self, key: str, there: Any, here: Any) -> None:
        if key in IDENTIFIERS and isinstance(there, str) and isinstance(here, str):
            self._ids.setdefault(there, here)


def _details(sent: Any) -> dict[str, Any]:
    """The details of a new order's transaction, if there are any."""
    found = value_at(sent, "transactions[0].payment_method_details")
    return found if isinstance(found, dict) else {}


def _compared_value(theirs: Answer, there: Any, here: Any, place: str) -> Check:
    """A value there and here; of most fields it matters only that they are there."""
    rule = rule_of_field(theirs.method, theirs.path, place)
    if place == "status" and theirs.method == "POST" and rule == "STA-01":
        rule = rule_of_beginning(theirs.sent)
    matters = place.rpartition(".")[2].partition("[")[0] in VALUES and not EVENTS.search(place)
    is_so = there == here if matters or there is MISSING else True
    return holds(rule, is_so, f"{theirs.call}: {place} is {shown(there)}, not {shown(here)}")


def settings_at_start(recorded: Sequence[Recorded]) -> Mapping[str, Any]:
    """The mode in which the traffic was recorded, and the clock at its beginning."""
    flags = [each.answer.at("flags") for each in recorded if isinstance(each.answer.at("flags"), list)]
    is_live = bool(flags) and not any("is-test" in found for found in flags)
    return {"mode": "live" if is_live else "test", "clock": f"frozen@{recorded[0].at.isoformat()}"}
