"""The differences between two plays of the same scene, each with the rule that names it."""

from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

from payment_sandbox_verify.answer import MISSING, REFUSED_STATUSES
from payment_sandbox_verify.normalising import Gap, Moment, anonymize
from payment_sandbox_verify.player import Observation, Played
from payment_sandbox_verify.rules import (
    ALSO_SHOWN,
    CHALLENGE_RULE,
    ETAG_RULE,
    IGNORED_RULE,
    INDEX,
    MEDIA_TYPE_RULE,
    OTHER_STATUS_RULE,
    REFUND_RULE,
    REFUSAL_RULES,
    SPELLING_RULE,
    STATUS_RULES,
    SUCCESS_RULES,
    TYPE_RULE,
    VIOLATIONS_RULE,
    rule_of_call,
    rule_of_field,
)
from payment_sandbox_verify.steps import Call, Customer, Step, Webhooks

CONSEQUENT_PATHS: Final = ("etag", "ignored")  # an order with another difference differs in these, too
OTHER_RECORDS: Final = ("END-17", "END-18", "SET-54")  # the calls that answer no order
VALUE_LENGTH_MAX: Final = 120  # characters of a value in a report
STATE_PATHS: Final = ("status", "transactions.status")
STATE_DEPENDENT: Final = (  # fields that follow from the status
    *("completed", "is_capturable", "is_fully_captured", "events", "flags", "modified", "payment_url"),
    *("order_url", "msc_amount", "msc_calculation_type", "msc_currency", "reason", "customer_message"),
    *("payment_method_details", "order_line_details", "amount_details", "last_transaction_added"),
)
REQUIRED_REFUND_FIELDS: Final = ("id", "amount", "status", "transactions", "flags", "refund_of_order_id")
NEVER_EMPTY: Final = ("flags", "transactions", "events")
EMPTY_VALUES: Final[tuple[Any, ...]] = (MISSING, None, "", [], {})
EARLY_SECONDS_MAX: Final = 0.9  # some servers round times to seconds
MINUTE_SECONDS: Final = 60.0
GAP_SECONDS: Final = 20.0


class Difference(NamedTuple):
    """A difference: its rule, a sentence, where it is, and the two values.

    ``is_message`` marks a different text of an error, which breaks no rule. ``record`` is what the answer
    shows: an order, a QR request or a bank.
    """

    rule: str
    reason: str
    scene: str
    step: int
    path: str
    theirs: Any = None
    ours: Any = None
    is_message: bool = False
    record: str = "order"

    @property
    def place(self) -> tuple[str, int, str]:
        """Where the difference is."""
        return self.scene, self.step, self.path

    @property
    def kind(self) -> tuple[str, str, str]:
        """What is different, wherever it appears: equal kinds are one difference.

        The same difference of a field in several answers is one, also if a transaction repeats the field of
        its order. A different outcome or status is one difference for each rule.
        """
        theirs, ours = _type_of(self.theirs), _type_of(self.ours)
        name = self.path.removeprefix("transactions.")
        if self.is_message or name in ("", "status"):
            return self.rule, self.path, f"{self.theirs!r:.40}{self.ours!r:.40}"
        if isinstance(self.theirs, Moment) and isinstance(self.ours, Moment) and theirs != ours:
            return self.rule, "", f"{theirs}, not {ours}"
        if theirs != ours:
            return self.record, name, f"{theirs}, not {ours}"
        if _is_truncated(self.theirs, self.ours):
            return self.record, name, "truncated"
        return self.record, name, f"{self.theirs!r:.40}{self.ours!r:.40}"


def _is_truncated(theirs: Any, ours: Any) -> bool:
    return isinstance(theirs, str) and isinstance(ours, str) and bool(theirs) and ours.startswith(theirs)


def _type_of(value: Any) -> str:
    return value.spelling if isinstance(value, Moment) else type(value).__name__


class Compared(NamedTuple):
    """The comparison of a scene: differences, and the rules that agreed or could not be compared."""

    differences: list[Difference]
    agreed: set[str]
    hidden: dict[str, str]
    """The reason for each rule that could not be compared."""
    hidden_by: dict[str, str]
    """The rule whose difference hides another rule."""


class Leaf(NamedTuple):
    """A value in two answers to the same call; one of them can be ``MISSING``."""

    path: str
    theirs: Any
    ours: Any

    @property
    def plain(self) -> str:
        """The path without indices."""
        return INDEX.sub("", self.path)

    @property
    def name(self) -> str:
        """The name of the field."""
        return self.plain.rpartition(".")[2]


def leaves(theirs: Any, ours: Any, path: str = "") -> Iterator[Leaf]:
    """Yield the values in two answers, in pairs; lists of different lengths also yield their lengths."""
    if isinstance(theirs, dict) and isinstance(ours, dict):
        for key in {**ours, **theirs}:
            below = f"{path}.{key}".lstrip(".")
            yield from leaves(theirs.get(key, MISSING), ours.get(key, MISSING), below)
    elif isinstance(theirs, list) and isinstance(ours, list):
        for index, (one, other) in enumerate(zip(theirs, ours, strict=False)):
            yield from leaves(one, other, f"{path}[{index}]")
        if len(theirs) != len(ours):
            yield Leaf(path, [f"{len(theirs)} items"], [f"{len(ours)} items"])
    else:
        yield Leaf(path, theirs, ours)


def is_alike(leaf: Leaf, seconds: float) -> bool:
    """Whether two values count as equal; ``seconds`` is the real duration of the scene."""
    theirs, ours = leaf.theirs, leaf.ours
    if isinstance(theirs, Moment) and isinstance(ours, Moment):
        return theirs.spelling == ours.spelling and _is_about(theirs, ours, seconds)
    if isinstance(theirs, Gap) and isinstance(ours, Gap):
        return abs(theirs.seconds - ours.seconds) <= GAP_SECONDS
    if theirs in EMPTY_VALUES and ours in EMPTY_VALUES:
        return leaf.name not in NEVER_EMPTY or type(theirs) is type(ours)
    return type(theirs) is type(ours) and bool(theirs == ours)


def _is_about(theirs: Moment, ours: Moment, seconds: float) -> bool:
    if theirs.seconds is None or ours.seconds is None:
        return theirs.seconds is ours.seconds
    early = EARLY_SECONDS_MAX if ours.spelling.count(":") > 1 else MINUTE_SECONDS
    return -early <= theirs.seconds - ours.seconds <= seconds + early


def describe(value: Any) -> str:
    """Return a value as text for a report, truncated if it is long."""
    text = "missing" if value is MISSING else repr(value)
    return text if len(text) <= VALUE_LENGTH_MAX else f"{text[:VALUE_LENGTH_MAX]}..."


def compare_scene(theirs: Played, ours: Played) -> Compared:
    """Compare two plays of a scene step by step.

    What follows from a difference in the outcome of a call, or in the status of an order, is no difference of
    its own: later steps with the same order are not compared.
    """
    compared = Compared([], set(), {}, {})
    tainted: dict[str, tuple[str, str]] = {}  # by order: the rule that differs, or "", and the reason
    changed: set[str] = set()  # the orders with another difference, which have another ETag for it
    for number, step in enumerate(ours.scene.steps):
        one, other = theirs.observations[number], ours.observations[number]
        names = one.orders | other.orders
        cause = next((tainted[name] for name in sorted(names) if name in tainted), None)
        if cause is None and (problem := one.problem or other.problem):
            cause = "", problem
        if cause is not None:
            _hide(compared, step, other, *cause)
            tainted |= dict.fromkeys(names | _saved(step), cause)
            continue
        found = list(_compare_step(step, number, one, other, theirs))
        if changed & names or any(each.path not in CONSEQUENT_PATHS for each in found):
            found = [each for each in found if each.path not in CONSEQUENT_PATHS]
        changed |= names | _saved(step) if found else set()
        compared.differences.extend(found)
        visible = [each for each in found if not each.is_message]
        if not visible:
            shown = set(_shown_rules(step, one, other))
            compared.agreed.update(shown, *(ALSO_SHOWN[each].split() for each in shown & ALSO_SHOWN.keys()))
            for name in _saved(step):
                tainted.pop(name, None)
        elif any(each.path in ("", *STATE_PATHS) for each in visible):
            first = visible[0]
            tainted |= dict.fromkeys(names | _saved(step), (first.rule, first.reason))
    compared.agreed.difference_update(each.rule for each in compared.differences if not each.is_message)
    return compared


def _saved(step: Step) -> set[str]:
    return {step.saves} if isinstance(step, Call) and step.saves else set()


def _hide(compared: Compared, step: Step, ours: Observation, rule: str, reason: str) -> None:
    for each in (*step_rules(step), *ours.rules):
        if each not in compared.agreed:
            compared.hidden.setdefault(each, f"hidden because {rule} differs: {reason}" if rule else reason)
            if rule:
                compared.hidden_by.setdefault(each, rule)


def step_rules(step: Step) -> list[str]:
    """Return the rules that a step shows."""
    return step.rules.split()


def _shown_rules(step: Step, theirs: Observation, ours: Observation) -> Iterator[str]:
    """Yield the rules that two equal observations of a step agree in."""
    yield from step_rules(step)
    yield from ours.rules
    if isinstance(step, Call):
        is_refused = ours.status in REFUSED_STATUSES
        yield from REFUSAL_RULES if is_refused else SUCCESS_RULES
        yield (
            STATUS_RULES.get(ours.status, OTHER_STATUS_RULE)
            if is_refused
            else rule_of_call(step.method, step.path)
        )
        for leaf, rule in _field_rules(step, theirs, ours) if not is_refused else ():
            yield rule
            yield from (SPELLING_RULE,) if isinstance(leaf.ours, Moment) else ()
        yield from step.about.values()
        yield from (ETAG_RULE,) if "etag" in ours.shown else ()


def _field_rules(step: Call, theirs: Observation, ours: Observation) -> Iterator[tuple[Leaf, str]]:
    body = ours.shown.get("body")
    for leaf in leaves(theirs.shown.get("body"), body):
        rule = rule_of_field(step.method, step.path, leaf.path, body)
        yield leaf, rule


def _compare_step(
    step: Step, number: int, theirs: Observation, ours: Observation, play: Played
) -> Iterator[Difference]:
    """Yield the differences of one step."""

    def difference(
        rule: str, reason: str, path: str = "", values: tuple[Any, Any] = (None, None)
    ) -> Difference:
        name = step.name or (
            f"{step.method} {theirs.path}" if isinstance(step, Call) else type(step).__name__
        )
        call = rule_of_call(step.method, step.path) if isinstance(step, Call) else ""
        record = call if call in OTHER_RECORDS else "order"
        return Difference(rule, f"{name}: {reason}", play.scene.name, number, path, *values, record=record)

    if not isinstance(step, Call):
        yield from _compare_shown(step, theirs, ours, difference, play)
    elif theirs.is_success != ours.is_success or theirs.status // 100 != ours.status // 100:
        rule = ours.rules[0] if ours.rules and not ours.is_success else _first(step)
        yield difference(rule, f"{theirs.summary}, not {ours.summary}", "", (theirs.status, ours.status))
    elif not ours.is_success:
        yield from _compare_refusals(theirs, ours, difference)
    else:
        yield from _compare_answers(step, theirs, ours, difference, play)


def _first(step: Step) -> str:
    rules = step_rules(step)
    return rules[0] if rules else OTHER_STATUS_RULE


def _compare_refusals(theirs: Observation, ours: Observation, difference: Any) -> Iterator[Difference]:
    status, kind = (theirs.status, ours.status), (theirs.error("type"), ours.error("type"))
    decisive = theirs.status if theirs.status == UNAUTHORIZED else ours.status
    rule = STATUS_RULES.get(decisive, OTHER_STATUS_RULE)
    if status[0] != status[1]:
        yield difference(rule, f"{theirs.summary}, not {ours.summary}", "status code", status)
    elif kind[0] != kind[1]:
        reason = f"the error's type is {describe(kind[0])}, not {describe(kind[1])}"
        yield difference(TYPE_RULE, reason, "error.type", kind)
    elif theirs.shown.get("violations") != ours.shown.get("violations"):
        values = theirs.shown.get("violations"), ours.shown.get("violations")
        reason = f"the violations are {describe(values[0])}, not {describe(values[1])}"
        yield difference(VIOLATIONS_RULE, reason, "error.violations", values)
    messages = [anonymize(str(each.error("value"))) for each in (theirs, ours)]
    if messages[0] != messages[1]:
        values = messages[0], messages[1]
        yield difference(ours.rules[0] if ours.rules else rule, "", "error.value", values)._replace(
            is_message=True
        )
    yield from _compare_headers(theirs, ours, difference)


def _compare_headers(theirs: Observation, ours: Observation, difference: Any) -> Iterator[Difference]:
    for name, rule in (("challenge", CHALLENGE_RULE), ("media type", MEDIA_TYPE_RULE), ("etag", ETAG_RULE)):
        one, other = theirs.shown.get(name, MISSING), ours.shown.get(name, MISSING)
        if one != other and (
            name != "etag" or ours.shown.get("body") is not None or ours.status == NOT_MODIFIED
        ):
            yield difference(
                rule, f"the {name} is {describe(one)}, not {describe(other)}", name, (one, other)
            )
    one, other = theirs.shown.get("ignored"), ours.shown.get("ignored")
    if one is not None and one != other:  # a server need not have this header
        rule = "SET-53" if ours.method == "PUT" else IGNORED_RULE
        reason = f"the names of the ignored fields are {describe(one)}, not {describe(other)}"
        yield difference(rule, reason, "ignored", (one, other))


NOT_MODIFIED: Final = 304
UNAUTHORIZED: Final = 401
CREATED: Final = 201


def _compare_answers(
    step: Call, theirs: Observation, ours: Observation, difference: Any, play: Played
) -> Iterator[Difference]:
    if theirs.status != ours.status:
        rule = rule_of_call(step.method, step.path) if ours.status == CREATED else "SET-07"
        reason = f"the status code is {theirs.status}, not {ours.status}"
        yield difference(rule, reason, "status code", (theirs.status, ours.status))
    if theirs.shown.get("body") is None and isinstance(ours.shown.get("body"), dict | list):
        yield difference("SET-06", "the answer has no JSON", "", (None, "JSON"))
        return
    changed = [each for each in _field_rules(step, theirs, ours) if not is_alike(each[0], play.seconds)]
    is_refund = isinstance((ours.shown.get("body") or {}), dict) and "refund_of_order_id" in (
        ours.shown.get("body") or {}
    )
    if is_refund:
        changed = [each for each in changed if _is_in_refund(each[0])]
    states = [
        each for each in changed if each[0].plain in STATE_PATHS or _is_state_of_transaction(step, each[0])
    ]
    for leaf, _ in states[:1]:
        state_rule = REFUND_RULE if is_refund else step.about.get("status", _first(step))
        yield _field_difference(difference, state_rule, leaf)
    seen: set[str] = set()
    for leaf, rule in changed:
        root = leaf.plain.removeprefix("transactions.").partition(".")[0]
        is_consequence = bool(states) and (root in STATE_DEPENDENT or (leaf, rule) in states)
        if not is_consequence and leaf.plain not in seen:
            seen.add(leaf.plain)
            yield _field_difference(difference, _rule_of_leaf(step, leaf, rule), leaf)
    yield from _compare_headers(theirs, ours, difference)


def _is_state_of_transaction(step: Call, leaf: Leaf) -> bool:
    return leaf.path == "status" and "/transactions/" in step.path


def _is_in_refund(leaf: Leaf) -> bool:
    """Whether a difference counts in a refund, which may lack some fields of an order."""
    root = leaf.plain.partition(".")[0]
    return leaf.theirs is not MISSING or root in REQUIRED_REFUND_FIELDS


def _rule_of_leaf(step: Call, leaf: Leaf, rule: str) -> str:
    if leaf.name == "events" and isinstance(leaf.theirs, list) and isinstance(leaf.ours, list):
        return "TEV-01"
    if (
        isinstance(leaf.theirs, Moment)
        and isinstance(leaf.ours, Moment)
        and _type_of(leaf.theirs) != _type_of(leaf.ours)
    ):
        return rule if rule.startswith("QR-") else SPELLING_RULE
    root = leaf.plain.partition(".")[0]
    return step.about.get(leaf.plain, step.about.get(root, rule))


def _field_difference(difference: Any, rule: str, leaf: Leaf) -> Difference:
    theirs, ours = leaf.theirs, leaf.ours
    if _is_truncated(theirs, ours):
        reason = f"{leaf.path} is truncated to {len(theirs)} of {len(ours)} characters"
    elif ours is MISSING:
        reason = f"{leaf.path} is present, but not in the sandbox: {describe(theirs)}"
    else:
        reason = f"{leaf.path} is {describe(theirs)}, not {describe(ours)}"
    result: Difference = difference(rule, reason, leaf.plain, (theirs, ours))
    return result


def _compare_shown(
    step: Step, theirs: Observation, ours: Observation, difference: Any, play: Played
) -> Iterator[Difference]:
    """Compare what a customer, a browser or the receiver of webhooks saw."""
    if isinstance(step, Webhooks):
        yield from _compare_webhooks(step, theirs, ours, difference, play)
        return
    rules = step_rules(step)
    for leaf in leaves(theirs.shown, ours.shown):
        if not is_alike(leaf, play.seconds):
            rule = PAGE_RULES.get(leaf.plain, _first(step)) if isinstance(step, Customer) else _first(step)
            yield difference(
                rule if rule in rules or leaf.plain in PAGE_RULES else _first(step),
                f"{leaf.path or 'it'} is {describe(leaf.theirs)}, not {describe(leaf.ours)}",
                leaf.plain,
                (leaf.theirs, leaf.ours),
            )
            return


PAGE_RULES: Final = {"language": "CUS-12"}


def _compare_webhooks(
    step: Webhooks, theirs: Observation, ours: Observation, difference: Any, play: Played
) -> Iterator[Difference]:
    received, expected = theirs.shown["webhooks"], ours.shown["webhooks"]
    if len(received) != len(expected):
        reason = f"{len(received)} of {len(expected)} webhooks arrived{theirs.shown.get('others', '')}"
        yield difference(_first(step), reason, "", (len(received), len(expected)))
        return
    for leaf in leaves(received, expected):
        if not is_alike(leaf, play.seconds):
            rule = WEBHOOK_RULES.get(leaf.name, WEBHOOK_RULES["body"])
            reason = f"the webhook's {leaf.name} is {describe(leaf.theirs)}, not {describe(leaf.ours)}"
            yield difference(rule, reason, leaf.plain, (leaf.theirs, leaf.ours))
            return


WEBHOOK_RULES: Final = {
    "method": "HOOK-01",
    "media type": "HOOK-01",
    "authorization": "AUTH-03",
    "event": "HOOK-05",
    "order_id": "HOOK-06",
    "project_id": "HOOK-07",
    "body": "HOOK-08",
    "after": "HOOK-11",
}


def unique(differences: Iterable[Difference]) -> list[Difference]:
    """Return the first difference of each kind."""
    kinds: dict[tuple[str, str, str], Difference] = {}
    for each in differences:
        kinds.setdefault(each.kind, each)
    return list(kinds.values())


def by_rule(differences: Iterable[Difference]) -> dict[str, list[Difference]]:
    """Group differences by their rules; texts of errors break none."""
    grouped: dict[str, list[Difference]] = {}
    for each in unique(differences):
        if not each.is_message:
            grouped.setdefault(each.rule, []).append(each)
    return grouped
