"""Differences between two answers: values in pairs, when they count as equal, and which are the same."""

import re
from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

from payment_sandbox_verify.answer import MISSING
from payment_sandbox_verify.normalising import Gap, Named, ShownTime, identity, without_form
from payment_sandbox_verify.rules import GENERAL_RULES, INDEX

DURATION: Final = re.compile(r"P(?=.)(\d{1,9}[YMWD]){0,4}(T(\d{1,9}[HMS]){1,3})?")
VALUE_LENGTH_MAX: Final = 120  # characters of a value in a report
STATE_PATHS: Final = ("status", "transactions.status")
NEVER_EMPTY: Final = ("flags", "transactions", "events")
EMPTY_VALUES: Final[tuple[Any, ...]] = (MISSING, None, "", [], {})
NULLABLE: Final = ("consumer_name",)
EARLY_SECONDS_MAX: Final = 0.9  # some servers round times to seconds
MINUTE_SECONDS: Final = 60.0
GAP_SECONDS: Final = 20.0


class AnswerDifference(NamedTuple):
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
    def is_decisive(self) -> bool:
        """Whether the outcome of the call, the record or the status differs, from which more follows."""
        is_other_record = self.path == "id" and without_form(self.theirs) != without_form(self.ours)
        return (self.path in ("", *STATE_PATHS) or is_other_record) and not self.is_message

    @property
    def kind(self) -> tuple[str, str, str]:
        """What is different, wherever it appears: equal kinds are one difference.

        The same difference of a field in several answers is one, also if a transaction repeats the field of
        its order. A different outcome or status is one difference for each rule.
        """
        theirs, ours = type_of(self.theirs), type_of(self.ours)
        name = self.path.removeprefix("transactions.")
        if self.is_message or name in ("", "status"):
            return self.rule, self.path, f"{self.theirs!r:.40}{self.ours!r:.40}"
        if isinstance(self.theirs, ShownTime) and isinstance(self.ours, ShownTime) and theirs != ours:
            return self.rule, "", f"{theirs}, not {ours}"
        if theirs != ours or isinstance(self.theirs, Named | ShownTime):  # these differ from scene to scene
            return self.record, name, f"{theirs}, not {ours}"
        if is_truncated(self.theirs, self.ours):
            return self.record, name, "truncated"
        return self.record, name, f"{self.theirs!r:.40}{self.ours!r:.40}"


def is_truncated(theirs: Any, ours: Any) -> bool:
    """Whether a text is the beginning of the other."""
    return isinstance(theirs, str) and isinstance(ours, str) and bool(theirs) and ours.startswith(theirs)


def type_of(value: Any) -> str:
    """Return the type of a value, or the spelling of a time."""
    return value.spelling if isinstance(value, ShownTime) else type(value).__name__


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


def is_respelled(leaf: Leaf) -> bool:
    """Whether both values are durations, which are spelled differently."""
    texts = str(leaf.theirs), str(leaf.ours)
    return texts[0] != texts[1] and all(map(DURATION.fullmatch, texts))


def is_other_form(leaf: Leaf) -> bool:
    """Whether both values are the same identifier, in another form."""
    names = [without_form(each) for each in (leaf.theirs, leaf.ours) if isinstance(each, Named)]
    return len(names) == 2 and names[0] == names[1]


def leaves(theirs: Any, ours: Any, path: str = "") -> Iterator[Leaf]:
    """Yield the values in two answers, in pairs; lists of different lengths also yield their lengths.

    Two lists of texts are one pair, and so are two lists with the same items in another order.
    """
    if isinstance(theirs, dict) and isinstance(ours, dict):
        for key in {**ours, **theirs}:
            below = f"{path}.{key}".lstrip(".")
            yield from leaves(theirs.get(key, MISSING), ours.get(key, MISSING), below)
    elif isinstance(theirs, list) and isinstance(ours, list) and not _are_texts(theirs, ours):
        orders = list(map(identity, theirs)), list(map(identity, ours))
        if orders[0] != orders[1] and sorted(orders[0]) == sorted(orders[1]):
            yield Leaf(path, *orders)
            return
        for index, (one, other) in enumerate(zip(theirs, ours, strict=False)):
            yield from leaves(one, other, f"{path}[{index}]")
        if len(theirs) != len(ours):
            yield Leaf(path, [f"{len(theirs)} items"], [f"{len(ours)} items"])
    else:
        yield Leaf(path, theirs, ours)


def _are_texts(theirs: list[Any], ours: list[Any]) -> bool:
    return bool(theirs and ours) and all(isinstance(each, str) for each in (*theirs, *ours))


def is_alike(leaf: Leaf, seconds: float) -> bool:
    """Whether two values count as equal; ``seconds`` is the real duration of the scene."""
    theirs, ours = leaf.theirs, leaf.ours
    if isinstance(theirs, ShownTime) and isinstance(ours, ShownTime):
        return theirs.spelling == ours.spelling and _is_about(theirs, ours, seconds)
    if isinstance(theirs, Gap) and isinstance(ours, Gap):
        return abs(theirs.seconds - ours.seconds) <= GAP_SECONDS
    if theirs in EMPTY_VALUES and ours in EMPTY_VALUES:
        return leaf.name not in NEVER_EMPTY or type(theirs) is type(ours)
    if theirs is None and leaf.name in NULLABLE:
        return True
    return type(theirs) is type(ours) and bool(theirs == ours)


def _is_about(theirs: ShownTime, ours: ShownTime, seconds: float) -> bool:
    if theirs.seconds is None or ours.seconds is None:
        return theirs.seconds is ours.seconds
    if theirs.at == ours.at:  # a time that the request named
        return True
    early = EARLY_SECONDS_MAX if ours.spelling.count(":") > 1 else MINUTE_SECONDS
    return -early <= theirs.seconds - ours.seconds <= seconds + early


def describe(value: Any) -> str:
    """Return a value as text for a report, truncated if it is long."""
    text = "missing" if value is MISSING else repr(value)
    return text if len(text) <= VALUE_LENGTH_MAX else f"{text[:VALUE_LENGTH_MAX]}..."


def contrast(theirs: Any, ours: Any) -> str:
    """Return two values as the end of a sentence."""
    return f"{describe(theirs)}, expected {describe(ours)}"


def unique(differences: Iterable[AnswerDifference]) -> list[AnswerDifference]:
    """Return the first difference of each kind."""
    kinds: dict[tuple[str, str, str], AnswerDifference] = {}
    for each in differences:
        kinds.setdefault(each.kind, each)
    return list(kinds.values())


def by_rule(differences: Iterable[AnswerDifference]) -> dict[str, list[AnswerDifference]]:
    """Group differences by their rules; texts of errors break none."""
    grouped: dict[str, list[AnswerDifference]] = {}
    for each in unique(differences):
        if not each.is_message:
            grouped.setdefault(each.rule, []).append(each)
    for rule, general in GENERAL_RULES.items():
        if rule in grouped and general in grouped:
            grouped[general] += grouped.pop(rule)
    return grouped
