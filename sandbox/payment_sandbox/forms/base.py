"""Forms: each parses a JSON object, and reports violations with their paths."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from functools import cache, cached_property, lru_cache
from itertools import islice
from typing import Any, ClassVar, Final, NamedTuple

from marshmallow import EXCLUDE, Schema, ValidationError, fields, missing, pre_load, validates_schema

from payment_sandbox.kernel.masking import MASK, Masking
from payment_sandbox.orders.refusals import VIOLATIONS_MAX, Invalid, Violation

OWN_PROBLEMS: Final = "_schema"  # marshmallow's key for the problems of an object or a list itself
NO_VALUE: Final = object()
CONTAINERS: Final = (dict, list)
NO_OBJECT: Final = "must be an object"
WRONG_TYPE: Final = "must be "
PHP_HINT: Final = " (in PHP, an empty object is new stdClass() or (object) [])"
SHOWN_LENGTH_MAX: Final = 40  # the characters of a refused value in a message
NAME_LENGTH_MAX: Final = 100  # a longer key is examined each time
CLOSE_RATIO: Final = 0.8
JSON_KINDS: Final[Mapping[type, tuple[type, ...]]] = {
    str: (fields.String, fields.Raw),
    int: (fields.Integer, fields.Raw),
    bool: (fields.Boolean, fields.Raw),
    list: (fields.List, fields.Raw),
    dict: (fields.Nested, fields.Dict, fields.Raw),
}
"""The fields that read a type of JSON."""


class Problem(str):
    """A message with the allowed values."""

    __slots__ = ("allowed", "nearest")
    allowed: Sequence[str] | None
    nearest: str | None

    def __new__(cls, message: str, allowed: Sequence[str] | None, nearest: str | None = None) -> "Problem":
        """Create a message with its alternatives."""
        problem = super().__new__(cls, message)
        problem.allowed = allowed
        problem.nearest = nearest
        return problem


class KnownField(NamedTuple):
    """A field of a form, and how to read it fast."""

    name: str
    field: "fields.Field[Any]"
    plain_type: type | None  # the field accepts all values of this type, unchanged
    is_skipped: bool  # if the key is absent


class Form(Schema):
    """A parser of an object's known keys; ``unknown_keys`` reports all other keys.

    A form has no other hooks than ``repairs`` and ``checks``, and no renamed fields.
    """

    error_messages = {"type": NO_OBJECT}
    null_is_absent: ClassVar[bool] = False

    class Meta:
        """Leave unknown keys to the caller."""

        unknown = EXCLUDE

    def load(self, data: Any, **options: Any) -> dict[str, Any]:
        """Parse an object, with the same result as marshmallow's own ``load`` in a fifth of its time.

        Raises:
            ValidationError: lists the problems of all fields and checks.
        """
        sent = data
        for repair in self._repairs:
            data = repair(data)
        values: dict[str, Any] = {}
        problems: dict[Any, Any] = {}
        if type(data) is dict or isinstance(data, Mapping):
            self._load_fields(data, values, problems)
        else:
            problems[OWN_PROBLEMS] = [self.error_messages["type"]]
        are_fields_valid = not problems
        for check in self._checks:
            if are_fields_valid or check.although_invalid:
                try:
                    check(values, sent)
                except ValidationError as error:
                    problems = _merge(problems, _by_name(error))
        if problems:
            raise ValidationError(problems, data=sent, valid_data=values)
        return values

    def _load_fields(self, data: Mapping[str, Any], values: dict[str, Any], problems: dict[Any, Any]) -> None:
        for name, field, plain_type, is_skipped in self._known_fields:
            if name in data:
                value = data[name]
                if type(value) is plain_type:
                    values[name] = value
                    continue
            elif is_skipped:
                continue
            else:
                value = missing
            try:
                values[name] = field.deserialize(value)
            except ValidationError as error:
                problems[name] = error.messages
                if error.valid_data:
                    values[name] = error.valid_data

    @cached_property
    def _known_fields(self) -> list[KnownField]:
        return [
            KnownField(
                name,
                field,
                _plain_type(field),
                is_skipped=not field.required and field.load_default is missing,
            )
            for name, field in self.load_fields.items()
        ]

    @cached_property
    def plain_names(self) -> frozenset[str]:
        """The known keys whose values have no keys that a form knows."""
        nesting = (fields.Nested, fields.List, fields.Dict)
        return frozenset(name for name, field in self.load_fields.items() if not isinstance(field, nesting))

    @cached_property
    def _repairs(self) -> list[Any]:
        return [getattr(self, name) for name in _hook_names(type(self), "is_repair")]

    @cached_property
    def _checks(self) -> list[Any]:
        return [getattr(self, name) for name in _hook_names(type(self), "although_invalid")]


@cache
def _hook_names(form: type[Form], mark: str) -> list[str]:
    return [name for name in dir(form) if hasattr(getattr(form, name, None), mark)]


def _plain_type(field: Any) -> type | None:
    """Return the type that the field accepts unchanged; subclasses may parse differently."""
    return vars(type(field)).get("plain_type") if not field.validators else None


def _by_name(error: ValidationError) -> dict[Any, Any]:
    """Return the problems of one field, or of several, by their names."""
    messages: Any = error.messages
    is_by_name = error.field_name == OWN_PROBLEMS and isinstance(messages, dict)
    return messages if is_by_name else {error.field_name: messages}


def _merge(known: Any, added: Any) -> Any:
    """Merge the messages of two errors, lists or by name; an object's own messages are a list."""
    if isinstance(known, list):
        if isinstance(added, list):
            return [*known, *added]
        return {**added, OWN_PROBLEMS: _merge(known, added.get(OWN_PROBLEMS, []))}
    more = added if isinstance(added, dict) else {OWN_PROBLEMS: added}
    return {**known, **{key: _merge(known[key], more[key]) if key in known else more[key] for key in more}}


def repairs(function: Callable[..., Any]) -> Any:
    """Mark a hook that runs before parsing and repairs input that parsing would refuse."""
    hook: Any = pre_load(function)
    hook.is_repair = True
    return hook


def checks(*, although_invalid: bool) -> Callable[[Callable[..., Any]], Any]:
    """Mark a hook that gets the parsed values and the whole request, and refuses inconsistent values.

    With ``although_invalid``, the hook also runs if a field is invalid; that field may then be missing.
    """

    def mark_hook(function: Callable[..., Any]) -> Any:
        hook: Any = validates_schema(skip_on_field_errors=not although_invalid, pass_original=True)(function)
        hook.although_invalid = although_invalid
        return hook

    return mark_hook


def nearest_word(word: str, known: Iterable[str], ratio: float = 0.6) -> str | None:
    """Return the closest known word; None if none is as close as ``ratio`` of ``difflib`` demands."""
    find = _nearest if len(word) <= NAME_LENGTH_MAX else _nearest.__wrapped__
    return find(word, tuple(known), ratio)


@lru_cache(maxsize=256)  # a shop sends the same unknown keys with each request
def _nearest(word: str, known: tuple[str, ...], ratio: float) -> str | None:
    return next(iter(get_close_matches(word, known, 1, ratio)), None)


def did_you_mean(nearest: str | None) -> str:
    """Return a suggestion to append to a message; empty if no word is close."""
    return f"; did you mean {nearest!r}?" if nearest else ""


class UnknownKey(NamedTuple):
    """An unknown key in a request with its value, and the fields known in its place."""

    path: str
    key: str
    known: "Mapping[str, fields.Field[Any]]"
    value: Any = None

    def nearest(self) -> str | None:
        """Return the closest known key."""
        return nearest_word(self.key, self.known)

    def meant(self, names: Mapping[str, str]) -> str | None:
        """Return the known key with this name elsewhere, or a very close one for the same type of value."""
        if (meant := names.get(self.key)) in self.known:
            return meant
        kinds = JSON_KINDS.get(type(self.value), (fields.Field,))
        alike = [name for name, field in self.known.items() if isinstance(field, kinds)]
        return nearest_word(self.key, alike, CLOSE_RATIO)

    def violation(self, nearest: str | None) -> Violation:
        """Return the violation, with the closest known key."""
        return Violation(self.path, f"is not a known key{did_you_mean(nearest)}", sorted(self.known), nearest)


def load(
    form: Form, data: Any, *, most: int | None = VIOLATIONS_MAX
) -> tuple[dict[str, Any], list[Violation]]:
    """Return the valid values, and at most ``most`` violations."""
    try:
        loaded: dict[str, Any] = form.load(data)
    except ValidationError as error:
        valid = error.valid_data if isinstance(error.valid_data, dict) else {}
        return valid, list(islice(_violations(error.messages, "", data), most))
    return loaded, []


def read(form: Form, data: Any) -> dict[str, Any]:
    """Parse an object in which every key must be known.

    Raises:
        Invalid: lists all violations.
    """
    loaded, violations = load(form, data)
    remaining = VIOLATIONS_MAX - len(violations)
    violations += [each.violation(each.nearest()) for each in unknown_keys(form, data)[:remaining]]
    if violations:
        raise Invalid(violations)
    return loaded


def unknown_keys(form: Form, data: Any, path: str = "") -> list[UnknownKey]:
    """Return the unknown keys at every level, in the order of the request."""
    unknown: list[UnknownKey] = []
    if isinstance(data, dict) and not (data.keys() <= form.plain_names):
        known = form.load_fields
        for key, value in data.items():
            if key not in known:
                unknown.append(UnknownKey(f"{path}.{key}" if path else key, key, known, value))
            elif isinstance(value, CONTAINERS) and key not in form.plain_names:
                unknown += _unknown_in(known[key], value, f"{path}.{key}" if path else key)
    return unknown


def _unknown_in(field: "fields.Field[Any]", value: Any, path: str) -> list[UnknownKey]:
    if isinstance(field, fields.Nested):
        form = field.schema
        assert isinstance(form, Form), "forms must nest forms"
        return unknown_keys(form, value, path)
    unknown: list[UnknownKey] = []
    if isinstance(field, fields.List) and isinstance(value, list):
        for index, item in enumerate(value):
            if isinstance(item, dict):
                unknown += _unknown_in(field.inner, item, f"{path}[{index}]")
    elif isinstance(field, fields.Dict) and field.value_field is not None and isinstance(value, dict):
        for key, item in value.items():
            unknown += _unknown_in(field.value_field, item, f"{path}.{key}")
    return unknown


def _violations(messages: object, path: str, value: object) -> Iterator[Violation]:
    if isinstance(messages, Mapping):
        for key, inner in messages.items():
            below = value if key == OWN_PROBLEMS else _value_below(value, key)
            yield from _violations(inner, _join_path(path, key), below)
    elif isinstance(messages, list):
        for inner in messages:
            yield from _violations(inner, path, value)
    else:
        nearest = getattr(messages, "nearest", None)
        message = _with_value(str(messages), path.rpartition(".")[2], value, nearest)
        yield Violation(path, message, getattr(messages, "allowed", None), nearest)


def _value_below(value: object, key: object) -> object:
    if isinstance(value, Mapping):
        return value.get(key, NO_VALUE)
    return value[key] if isinstance(value, list) and isinstance(key, int) and key < len(value) else NO_VALUE


def _with_value(message: str, name: str, value: object, nearest: str | None) -> str:
    """Add the refused value; a message about the content of an object or a list has none."""
    is_container = isinstance(value, Mapping | list)
    if value is NO_VALUE or value is None or (is_container and WRONG_TYPE not in message):
        return message
    if isinstance(value, str) and repr(value) in message:
        return message
    suggestion = did_you_mean(nearest)
    hint = PHP_HINT if value == [] and message == NO_OBJECT else suggestion
    return f"{message.removesuffix(suggestion)}; got {_describe(name, value)}{hint}"


def _describe(name: str, value: object) -> str:
    """Describe a value, cut between words; show nothing of a value with a secret.

    A key can contain the digits of a card number. If these alone were masked, nobody would recognize the key.
    """
    if isinstance(value, Mapping):
        return "an object"
    if isinstance(value, list):
        return "a list" if value else "[]"
    text = value if isinstance(value, str) else json.dumps(value, default=str)
    if Masking().mask_record(text, name) != text:
        return MASK
    if len(text) > SHOWN_LENGTH_MAX:
        words = text[: SHOWN_LENGTH_MAX + 1].rpartition(" ")[0]
        return repr(f"{words}...") if words else f"{len(text):,} characters"
    return repr(text) if isinstance(value, str) else text


class NothingForm(Form):
    """An empty object."""


NOTHING: Final = NothingForm()


def entry_violations(problems: dict[str, Any]) -> Any:
    """Return the problems of one entry; marshmallow nests them under ``key`` and ``value``."""
    of_key, of_value = problems.get("key", []), problems.get("value", [])
    return of_value if isinstance(of_value, dict) else [*of_key, *of_value]


def _join_path(path: str, key: Any) -> str:
    if key == OWN_PROBLEMS:
        return path
    if isinstance(key, int):
        return f"{path}[{key}]"
    return f"{path}.{key}" if path else str(key)
