"""Compares two plays of the same scene, and names each difference by a rule."""

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from payment_sandbox.methods import METHODS_BY_NAME
from payment_sandbox.web.answers.order_tables import UpdateForm
from payment_sandbox_verify.answer import MISSING, REFUSED_STATUSES
from payment_sandbox_verify.differences import (
    STATE_PATHS,
    AnswerDifference,
    Leaf,
    contrast,
    describe,
    is_alike,
    is_other_form,
    is_respelled,
    is_truncated,
    leaves,
    type_of,
)
from payment_sandbox_verify.normalising import ShownTime, anonymize, without_form
from payment_sandbox_verify.player import Observation, Played
from payment_sandbox_verify.rules import (
    ALSO_SHOWN,
    ETAG_RULE,
    GENERAL_RULES,
    OTHER_PERIOD_RULE,
    OTHER_STATUS_RULE,
    PERIOD_RULES,
    REFUND_RULE,
    REFUSAL_RULES,
    SPELLING_RULE,
    STATUS_RULES,
    SUCCESS_RULES,
    initial_rules,
    rule_of_call,
    rule_of_field,
    rule_of_path,
)
from payment_sandbox_verify.samples import INVOICE
from payment_sandbox_verify.steps import ORDERS_PATH, ApiCall, ConversationStep, Customer, Webhooks

CONSEQUENT_PATHS: Final = ("etag", "ignored")  # an order with another difference differs in these, too
OTHER_RECORDS: Final = ("END-17", "END-18", "SET-54")  # the calls that answer no order
STATE_DEPENDENT: Final = (  # fields that follow from the status
    *("completed", "is_capturable", "is_fully_captured", "events", "flags", "modified", "payment_url"),
    *("order_url", "msc_amount", "msc_calculation_type", "msc_currency", "reason", "customer_message"),
    *("payment_method_details", "order_line_details", "amount_details", "last_transaction_added"),
)
REQUIRED_REFUND_FIELDS: Final = ("id", "amount", "status", "transactions", "flags", "refund_of_order_id")
HEADER_RULES: Final = (
    ("WWW-Authenticate", "SET-02"),
    ("media type", "END-01"),
    ("etag", ETAG_RULE),
)
PAGE_RULES: Final = {"language": "CUS-12"}
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
PERIOD_PATH: Final = "transactions.expiration_period"
DEFAULT_PERIODS: Final = {
    name: each.capabilities.default_expiration for name, each in METHODS_BY_NAME.items()
}
NOT_MODIFIED: Final = 304
UPDATED_FIELDS: Final = tuple(UpdateForm().fields)
UPDATE_RULES: Final = {"amount": "SET-52", "order_lines": "SET-52"}
BLOCK_RULES: Final = {"order_line_details": "END-04", "amount_details": "END-05"}
FORM_AND_VALUE_RULES: Final = (("LDET-04", "LDET-01"), ("QR-19", "QR-20"))  # of the same fields
DECISIVE_STATUSES: Final = (401, 412)  # these name their rule, whatever the other server answers
CREATED: Final = 201
CONFLICT: Final = 409


class Compared(NamedTuple):
    """The comparison of a scene: differences, and the rules that agreed or could not be compared."""

    differences: list[AnswerDifference]
    agreed: set[str]
    hidden: dict[str, tuple[str, str]]
    """For each rule that could not be compared: the reason, and the rule whose difference hides it, or ""."""


def compare_scene(theirs: Played, ours: Played) -> Compared:
    """Compare two plays of a scene step by step.

    What follows from a difference in the outcome of a call, or in the status of an order, is no difference of
    its own: later steps with the same order are not compared.
    """
    comparison = _SceneComparison(theirs)
    for number, step in enumerate(ours.scene.steps):
        comparison.compare(
            _StepPair(step, number, theirs, theirs.observations[number], ours.observations[number])
        )
    compared = comparison.compared
    compared.agreed.difference_update(each.rule for each in compared.differences if not each.is_message)
    return compared


class _SceneComparison:
    """The comparison of one scene: what differs, and which orders of the scene are no longer comparable."""

    def __init__(self, theirs: Played) -> None:
        self.compared = Compared([], set(), {})
        self._tainted: dict[
            str, tuple[str, str]
        ] = {}  # by order: the rule that differs, or "", and the reason
        self._changed: set[str] = set()  # the orders with another difference

    def compare(self, pair: "_StepPair") -> None:
        """Compare a step, unless what it refers to differs already."""
        cause = self._cause(pair)
        if cause is not None:
            self._hide(pair, *cause)
            if not isinstance(pair.step, Webhooks):  # an order is as it is, whoever receives its webhooks
                self._tainted |= dict.fromkeys(pair.names | pair.saved, cause)
            return
        differences = list(pair.differences())
        found = self._without_consequences(pair, differences)
        self._changed |= pair.names | pair.saved if found else set()
        self._taint_etags(pair, differences)
        self.compared.differences.extend(found)
        decisive = next((each for each in found if each.is_decisive), None)
        if decisive is not None:
            cause = decisive.rule, decisive.reason
            self._tainted |= dict.fromkeys(pair.names | pair.saved, cause)
        else:
            self._agree(pair)

    def _taint_etags(self, pair: "_StepPair", differences: list[AnswerDifference]) -> None:
        """What later steps do with a different ETag is a consequence."""
        etag = next(((each.rule, each.reason) for each in differences if each.path == "etag"), None)
        for name in pair.saved:
            self._tainted.pop(f"{name}@ETag", None)
            self._tainted |= {f"{name}@ETag": etag} if etag else {}

    def _without_consequences(
        self, pair: "_StepPair", found: list[AnswerDifference]
    ) -> list[AnswerDifference]:
        """Return the differences without those that follow from another one in the same order."""
        if self._changed & pair.names or any(each.path not in CONSEQUENT_PATHS for each in found):
            return [each for each in found if each.path not in CONSEQUENT_PATHS]
        return found

    def _cause(self, pair: "_StepPair") -> tuple[str, str] | None:
        """Return the rule and the reason for which a step cannot be compared, if there is one."""
        for name in sorted(pair.names):
            if name in self._tainted:
                return self._tainted[name]
        problem = pair.theirs.problem or pair.ours.problem
        return ("", problem) if problem else None

    def _hide(self, pair: "_StepPair", rule: str, reason: str) -> None:
        shown = f"hidden because {rule} differs: {reason}" if rule else reason
        for each in (*pair.step_rules, *pair.ours.rules):
            self.compared.hidden.setdefault(each, (shown, rule))

    def _agree(self, pair: "_StepPair") -> None:
        shown = set(pair.shown_rules())
        self.compared.agreed.update(shown, *(ALSO_SHOWN[each].split() for each in shown & ALSO_SHOWN.keys()))
        for name in pair.saved:
            self._tainted.pop(name, None)


class _StepPair(NamedTuple):
    """One step, and what both servers answered."""

    step: ConversationStep
    number: int
    play: Played
    theirs: Observation
    ours: Observation

    @property
    def about(self) -> Mapping[str, str]:
        """The rules that name differences at certain paths; of a change, its fields."""
        if not isinstance(self.step, ApiCall):
            return {}
        sent = self.step.body if self.step.method == "PUT" and isinstance(self.step.body, dict) else {}
        changed = {name: UPDATE_RULES.get(name, "SET-51") for name in sent if name in UPDATED_FIELDS}
        return {**changed, **self.step.about}

    @property
    def names(self) -> frozenset[str]:
        """The names of the answers that the step refers to."""
        return self.theirs.orders | self.ours.orders

    @property
    def saved(self) -> set[str]:
        """The name under which the answer is saved."""
        return {self.step.saves} if isinstance(self.step, ApiCall) and self.step.saves else set()

    @property
    def step_rules(self) -> list[str]:
        """The rules that the step shows."""
        return self.step.rules.split() or [OTHER_STATUS_RULE]

    def shown_rules(self) -> Iterator[str]:
        """Yield the rules that two equal answers agree in."""
        yield from self.step.rules.split()
        yield from self.ours.rules
        if not isinstance(self.step, ApiCall):
            return
        yield from self.about.values()
        yield from (ETAG_RULE,) if "etag" in self.ours.shown else ()
        if self.ours.answer.status in REFUSED_STATUSES:
            yield from (*REFUSAL_RULES, STATUS_RULES.get(self.ours.answer.status, OTHER_STATUS_RULE))
            return
        yield from (*SUCCESS_RULES, rule_of_call(self.step.method, self.step.path))
        for leaf in self._leaves():
            if is_alike(leaf, self.play.seconds):
                yield self._rule_of(self.step, leaf)
                yield from (SPELLING_RULE,) if isinstance(leaf.ours, ShownTime) else ()

    def differences(self) -> Iterator[AnswerDifference]:
        """Yield the differences of the step."""
        step, theirs, ours = self.step, self.theirs, self.ours
        if isinstance(step, Webhooks):
            yield from self._compare_webhooks()
        elif not isinstance(step, ApiCall):
            yield from self._compare_shown()
        elif (
            theirs.answer.is_success != ours.answer.is_success
            or theirs.answer.status // 100 != ours.answer.status // 100
        ):
            rule = ours.rules[0] if ours.rules and not ours.answer.is_success else self.step_rules[0]
            rule = self._precise(rule)
            yield self._difference(
                rule,
                f"answered {theirs.answer.summary}, expected {ours.answer.summary}",
                "",
                theirs.answer.status,
                ours.answer.status,
            )
        elif not ours.answer.is_success:
            yield from self._compare_refusals()
        else:
            yield from self._compare_answers(step)

    def _precise(self, rule: str) -> str:
        """Return the rule of the step that the general rule of If-Match contains, if there is one."""
        return next((each for each in self.step_rules if GENERAL_RULES.get(each) == rule), rule)

    def _difference(
        self, rule: str, reason: str, path: str, theirs: Any = None, ours: Any = None
    ) -> AnswerDifference:
        step, scene, record = self.step, self.play.scene.name, "order"
        if isinstance(step, ApiCall):
            call = rule_of_call(step.method, step.path)
            record = call if call in OTHER_RECORDS else record
        shown = step.shown if step.name else f"{scene}, {step.shown}".removesuffix(", ")
        return AnswerDifference(
            rule, f"{shown}: {reason}", scene, self.number, path, theirs, ours, record=record
        )

    def _leaves(self) -> Iterator[Leaf]:
        """Yield the values in both answers, in pairs."""
        return leaves(self.theirs.shown.get("body"), self.ours.shown.get("body"))

    def _rule_of(self, step: ApiCall, leaf: Leaf) -> str:
        return rule_of_field(step.method, step.path, leaf.path, self.ours.shown.get("body"))

    def _compare_refusals(self) -> Iterator[AnswerDifference]:
        theirs, ours = self.theirs, self.ours
        decisive = theirs.answer.status if theirs.answer.status in DECISIVE_STATUSES else ours.answer.status
        refused = ours.rules[0] if ours.rules and ours.answer.status == CONFLICT else OTHER_STATUS_RULE
        rule = self._precise(STATUS_RULES.get(decisive, refused))
        types, violations = (
            (theirs.answer.at("error.type"), ours.answer.at("error.type")),
            self._shown("violations"),
        )
        shapes = self._shown("error")
        if shapes[0] != shapes[1]:
            yield self._difference("SET-03", f"answered {shapes[0]}, expected {shapes[1]}", "error", *shapes)
            return
        if theirs.answer.status != ours.answer.status:
            yield self._difference(
                rule,
                f"answered {theirs.answer.summary}, expected {ours.answer.summary}",
                "status code",
                theirs.answer.status,
                ours.answer.status,
            )
        elif types[0] != types[1]:
            reason = f"the error's type is {contrast(*types)}"
            yield self._difference("SET-04", reason, "error.type", *types)
        elif violations[0] != violations[1]:
            reason = f"the violations are {contrast(*violations)}"
            yield self._difference(
                self._violations_rule(*violations), reason, "error.violations", *violations
            )
        messages = [anonymize(str(each.answer.at("error.value"))) for each in (theirs, ours)]
        if messages[0] != messages[1]:
            named = ours.rules[0] if ours.rules else rule
            yield self._difference(named, "", "error.value", *messages)._replace(is_message=True)
        yield from self._compare_headers()

    def _violations_rule(self, theirs: list[dict[str, Any]], ours: list[dict[str, Any]]) -> str:
        """Return the rule of the field with other allowed values, if nothing else differs."""
        if [each["path"] for each in theirs] == [each["path"] for each in ours]:
            other = next(each for each in zip(theirs, ours, strict=True) if each[0] != each[1])
            if other[0]["allowed"] is not None:
                return rule_of_path(self.theirs.answer.path, other[0]["path"])
        return "SET-05"

    def _shown(self, name: str) -> tuple[Any, Any]:
        return self.theirs.shown.get(name, MISSING), self.ours.shown.get(name, MISSING)

    def _compare_headers(self) -> Iterator[AnswerDifference]:
        has_etag = self.ours.shown.get("body") is not None or self.ours.answer.status == NOT_MODIFIED
        for name, rule in HEADER_RULES:
            one, other = self._shown(name)
            if one != other and (name != "etag" or has_etag):
                yield self._difference(rule, f"the {name} is {contrast(one, other)}", name, one, other)
        one, other = self._shown("ignored")
        if one is not MISSING and one != other:  # a server need not have this header
            rule = "SET-53" if self.ours.answer.method == "PUT" else "SET-12"
            reason = f"the names of the ignored fields are {contrast(one, other)}"
            yield self._difference(rule, reason, "ignored", one, other)

    def _compare_answers(self, step: ApiCall) -> Iterator[AnswerDifference]:
        yield from self._compare_status(step)
        other_record = self._other_record(step)
        if other_record is not None:
            yield other_record
            return
        is_refund = _is_refund(self.ours.shown.get("body"))
        changed = list(self._changed_leaves(is_refund))
        state = next((leaf for leaf in changed if _is_state(step, leaf)), None)
        if state is not None:
            yield self._field_difference(self._state_rule(step, is_refund), state)
            changed = [leaf for leaf in changed if not _follows_from_state(step, leaf)]
        first = {leaf.plain: index for index, leaf in reversed([*enumerate(changed)])}
        for leaf in (changed[index] for index in sorted(first.values())):
            yield self._field_difference(self._rule_of_leaf(step, leaf), leaf)
        yield from self._compare_headers()

    def _other_record(self, step: ApiCall) -> AnswerDifference | None:
        """Return the difference of an answer that is no JSON, or not the record of this call."""
        theirs, ours = self.theirs.shown.get("body"), self.ours.shown.get("body")
        if theirs is None and isinstance(ours, dict | list):
            return self._difference("SET-06", "answered no JSON, expected JSON", "", None, "JSON")
        if not isinstance(ours, dict) or _is_same_record(theirs, ours):
            return None
        names = list(theirs) if isinstance(theirs, dict | list) else theirs, list(ours)
        return self._difference(
            rule_of_call(step.method, step.path), f"answered {contrast(*names)}", "", *names
        )

    def _rule_of_leaf(self, step: ApiCall, leaf: Leaf) -> str:
        rule = self._rule_of(step, leaf)
        if leaf.name == "events" and isinstance(leaf.theirs, list) and isinstance(leaf.ours, list):
            return "TEV-01"
        paths = (leaf.plain, leaf.plain.removeprefix("transactions."), leaf.plain.partition(".")[0])
        named = next((self.about[path] for path in paths if path in self.about), rule)
        if leaf.plain.startswith(tuple(BLOCK_RULES)) and type(leaf.theirs) is not type(leaf.ours):
            named = rule  # the form of a value, whatever the call before has changed
        return _rule_of_spelling(step, leaf, rule) or _rule_of_block(step, leaf) or _rule_of_type(leaf, named)

    def _state_rule(self, step: ApiCall, is_refund: bool) -> str:
        rule = REFUND_RULE if is_refund else step.about.get("status", "")
        if not rule and (step.method, step.path) == ("POST", ORDERS_PATH):
            return initial_rules(self.ours.answer.at("transactions[0].payment_method"))[0]
        if not rule and "/voids/" in step.path:
            return "SET-43"
        if not rule and "/captures/" in step.path and INVOICE in str(self.ours.answer.data):
            return "SET-40"
        return rule or self.step_rules[0]

    def _changed_leaves(self, is_refund: bool) -> Iterator[Leaf]:
        own = [each for each in self._leaves() if each.path == "id"] if is_refund else []
        own_ids = [without_form(each) for leaf in own for each in (leaf.theirs, leaf.ours)]
        for leaf in self._leaves():
            if is_alike(leaf, self.play.seconds) or (is_refund and not _is_in_refund(leaf)):
                continue
            if (
                leaf.name != "order_id" or [without_form(leaf.theirs), without_form(leaf.ours)] != own_ids
            ):  # follows from the id
                yield leaf

    def _compare_status(self, step: ApiCall) -> Iterator[AnswerDifference]:
        statuses = self.theirs.answer.status, self.ours.answer.status
        if statuses[0] != statuses[1]:
            rule = rule_of_call(step.method, step.path) if self.ours.answer.status == CREATED else "SET-07"
            yield self._difference(
                rule, f"the status code is {contrast(*statuses)}", "status code", *statuses
            )

    def _field_difference(self, rule: str, leaf: Leaf) -> AnswerDifference:
        theirs, ours = leaf.theirs, leaf.ours
        reason = f"{leaf.path} is {contrast(theirs, ours)}"
        if is_truncated(theirs, ours):
            reason = f"{leaf.path} is truncated to {len(theirs)} of {len(ours)} characters"
        elif ours is MISSING:
            reason = f"{leaf.path} is {describe(theirs)}, expected no such field"
        return self._difference(rule, reason, leaf.plain, theirs, ours)

    def _compare_shown(self) -> Iterator[AnswerDifference]:
        """Compare what a customer or a browser saw."""
        for leaf in leaves(self.theirs.shown, self.ours.shown):
            if not is_alike(leaf, self.play.seconds):
                is_page = isinstance(self.step, Customer)
                rule = PAGE_RULES.get(leaf.plain, self.step_rules[0]) if is_page else self.step_rules[0]
                reason = f"{leaf.path or 'it'} is {contrast(leaf.theirs, leaf.ours)}"
                yield self._difference(rule, reason, leaf.plain, leaf.theirs, leaf.ours)
                return

    def _compare_webhooks(self) -> Iterator[AnswerDifference]:
        received, expected = self.theirs.shown["webhooks"], self.ours.shown["webhooks"]
        if len(received) != len(expected):
            counts = len(received), len(expected)
            reason = (
                f"{counts[0]} webhooks arrived, expected {counts[1]}{self.theirs.shown.get('others', '')}"
            )
            yield self._difference(self.step_rules[0], reason, "", *counts)
            return
        for leaf in leaves(received, expected):
            if not is_alike(leaf, self.play.seconds):
                rule = WEBHOOK_RULES.get(leaf.name, WEBHOOK_RULES["body"])
                reason = f"the webhook's {leaf.name} is {contrast(leaf.theirs, leaf.ours)}"
                yield self._difference(rule, reason, leaf.plain, leaf.theirs, leaf.ours)
                return


def _is_same_record(theirs: Any, ours: dict[str, Any]) -> bool:
    """Whether an answer has an id, or at least half of the fields that the sandbox answers."""
    return isinstance(theirs, dict) and ("id" in theirs or 2 * len(theirs.keys() & ours.keys()) >= len(ours))


def _is_refund(body: Any) -> bool:
    return isinstance(body, dict) and "refund_of_order_id" in body


def _is_state(step: ApiCall, leaf: Leaf) -> bool:
    """Whether a value is the status of an order, or of the transaction that a capture or a void answers."""
    return leaf.plain in STATE_PATHS or (leaf.path == "status" and "/transactions/" in step.path)


def _follows_from_state(step: ApiCall, leaf: Leaf) -> bool:
    root = leaf.plain.removeprefix("transactions.").partition(".")[0]
    return root in STATE_DEPENDENT or _is_state(step, leaf)


def _is_in_refund(leaf: Leaf) -> bool:
    """Whether a difference counts in a refund, which may lack some fields of an order."""
    return leaf.theirs is not MISSING or leaf.plain.partition(".")[0] in REQUIRED_REFUND_FIELDS


def _rule_of_spelling(step: ApiCall, leaf: Leaf, rule: str) -> str:
    """Return the rule of a time or a period in another form, or of a default period."""
    if is_other_form(leaf):
        return SPELLING_RULE
    are_times = isinstance(leaf.theirs, ShownTime) and isinstance(leaf.ours, ShownTime)
    if are_times and type_of(leaf.theirs) != type_of(leaf.ours):
        return rule if rule.startswith("QR-") else SPELLING_RULE
    if is_respelled(leaf) and str(leaf.ours) in repr(step.body):
        return "SET-20"
    is_default = leaf.plain == PERIOD_PATH and leaf.ours in DEFAULT_PERIODS.values()
    return _rule_of_period(step) if is_default else ""


def _rule_of_type(leaf: Leaf, rule: str) -> str:
    """Return the rule of the form if the type of a value differs, and the rule of the value otherwise."""
    form, value = next((pair for pair in FORM_AND_VALUE_RULES if rule in pair), (rule, rule))
    return value if type(leaf.theirs) is type(leaf.ours) or MISSING in (leaf.theirs, leaf.ours) else form


def _rule_of_block(step: ApiCall, leaf: Leaf) -> str:
    """Return the rule of a block that one of the answers lacks."""
    if leaf.path not in BLOCK_RULES or MISSING not in (leaf.theirs, leaf.ours):
        return ""
    return "END-06" if all(each in step.path for each in BLOCK_RULES) else BLOCK_RULES[leaf.path]


def _rule_of_period(step: ApiCall) -> str:
    """Return the rule of the default period of the method that a call names."""
    method = next((name for name in DEFAULT_PERIODS if name in repr(step.body)), "")
    return PERIOD_RULES.get(method, OTHER_PERIOD_RULE)
