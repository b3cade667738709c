"""Forms: each parses a JSON object, and reports violations with their paths."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, ClassVar, Final, NamedTuple

from marshmallow import EXCLUDE, Schema, ValidationError, fields, pre_load, validates_schema

from payment_sandbox.orders.refusals import VIOLATIONS_MAX, Violation

REPAIR_HOOK: Final = "repairs"
CHECK_HOOK: Final = "checks"
OTHER_HOOK: Final = "other"


class Problem(str):
    """A message with the allowed values."""

    __slots__ = ("allowed", "nearest")
    allowed: Sequence[str]
    nearest: str | None

    def __new__(cls, message: str, allowed: Sequence[str], nearest: str | None = None) -> "Problem":
        """Create a message with its alternatives."""
        problem = super().__new__(cls, message)
        problem.allowed = allowed
        problem.nearest = nearest
        return problem


class Form(Schema):
    """A parser of an object's known keys; ``unknown_keys`` reports all other keys."""

    error_messages = {"type": "must be an object"}
    null_is_absent: ClassVar[bool] = False

    class Meta:
        """Leave unknown keys to the caller."""

        unknown = EXCLUDE


def repairs(function: Callable[..., Any]) -> Any:
    """Mark a hook that runs before parsing and repairs input that parsing would refuse."""
    hook = pre_load(function)
    hook.hook_kind = REPAIR_HOOK  # type: ignore[attr-defined]
    return hook


def checks(*, although_invalid: bool) -> Callable[[Callable[..., Any]], Any]:
    """Mark a hook that runs after parsing and refuses inconsistent values.

    With ``although_invalid``, the hook also runs if a field is invalid; that field may then be missing.
    """

    def mark_hook(function: Callable[..., Any]) -> Any:
        hook = validates_schema(skip_on_field_errors=not although_invalid)(function)
        hook.hook_kind = CHECK_HOOK
        return hook

    return mark_hook


def hook_kinds(form: Form) -> dict[str, str]:
    """Return the kinds of the form's hooks, by name."""
    attributes = {name: getattr(type(form), name, None) for name in dir(type(form))}
    hooks = {name: hook for name, hook in attributes.items() if hasattr(hook, "__marshmallow_hook__")}
    return {name: getattr(hook, "hook_kind", OTHER_HOOK) for name, hook in hooks.items()}


def nearest_word(word: str, known: Sequence[str]) -> str | None:
    """Return the closest known word; None if no word is close."""
    from difflib import get_close_matches  # imported late, for a faster startup

    return next(iter(get_close_matches(word, known, n=1)), None)


def did_you_mean(nearest: str | None) -> str:
    """Return a suggestion to append to a message; empty if no word is close."""
    return f"; did you mean {nearest!r}?" if nearest else ""


class UnknownKey(NamedTuple):
    """An unknown key in a request, and the keys known in its place."""

    path: str
    key: str
    known: Sequence[str]

    def nearest(self) -> str | None:
        """Return the closest known key."""
        return nearest_word(self.key, self.known)

    def violation(self) -> Violation:
        """Return the violation, with the closest known key."""
        nearest = self.nearest()
        return Violation(self.path, f"is not a known key{did_you_mean(nearest)}", sorted(self.known), nearest)


def load(
    form: Form, data: Any, *, most: int | None = VIOLATIONS_MAX
) -> tuple[dict[str, Any], list[Violation]]:
    """Return the valid values, and at most ``most`` violations."""
    try:
        loaded: dict[str, Any] = form.load(data)
    except ValidationError as error:
        valid = error.valid_data if isinstance(error.valid_data, dict) else {}
        return valid, list(islice(_violations(error.messages, ""), most))
    return loaded, []


def unknown_keys(form: Form, data: Any, path: str = "") -> Iterator[UnknownKey]:
    """Yield the unknown keys at every level."""
    if not isinstance(data, dict):
        return
    known = form.load_fields
    for key, value in data.items():
        full_path = f"{path}.{key}" if path else key
        field = known.get(key)
        if field is None:
            yield UnknownKey(full_path, key, list(known))
        elif isinstance(value, dict | list):
            yield from _unknown_in(field, value, full_path)


def _unknown_in(field: "fields.Field[Any]", value: Any, path: str) -> Iterator[UnknownKey]:
    if isinstance(field, fields.Nested):
        yield from unknown_keys(_form_of(field), value, path)
    elif isinstance(field, fields.List) and isinstance(value, list):
        for index, item in enumerate(value):
            if isinstance(item, Mapping):
                yield from _unknown_in(field.inner, item, f"{path}[{index}]")
    elif isinstance(field, fields.Dict) and field.value_field is not None and isinstance(value, dict):
        for key, item in value.items():
            yield from _unknown_in(field.value_field, item, f"{path}.{key}")


def _form_of(field: fields.Nested) -> Form:
    form = field.schema
    assert isinstance(form, Form), "forms must nest forms"
    return form


def _violations(messages: Any, path: str) -> Iterator[Violation]:
    if isinstance(messages, Mapping):
        for key, inner in messages.items():
            yield from _violations(inner, _join_path(path, key))
    elif isinstance(messages, list):
        for inner in messages:
            yield from _violations(inner, path)
    else:
        nearest = getattr(messages, "nearest", None)
        yield Violation(path, str(messages), getattr(messages, "allowed", None), nearest)


class NothingForm(Form):
    """An empty object."""


NOTHING: Final = NothingForm()


def entry_violations(problems: dict[str, Any]) -> Any:
    """Return the problems of one entry; marshmallow nests them under ``key`` and ``value``."""
    of_key, of_value = problems.get("key", []), problems.get("value", [])
    return of_value if isinstance(of_value, dict) else [*of_key, *of_value]


def _join_path(path: str, key: Any) -> str:
    if key == "_schema":
        return path
    if isinstance(key, int):
        return f"{path}[{key}]"
    return f"{path}.{key}" if path else str(key)
