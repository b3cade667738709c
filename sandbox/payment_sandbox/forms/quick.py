"""A fast path for valid bodies; marshmallow parses all other bodies and reports their errors.

The reader of a form is built from the form's fields on first use. It either returns exactly the result of
``Form.load``, or falls back to marshmallow; it never refuses a body. Property tests compare both.
"""

from collections.abc import Callable
from functools import lru_cache
from itertools import islice
from typing import Any, Final

from marshmallow import ValidationError, missing, validate

from payment_sandbox.forms.base import CHECK_HOOK, REPAIR_HOOK, Form, hook_kinds, load, unknown_keys
from payment_sandbox.forms.fields import Anything, Cents, Choice, Flag, FormPart, Items, Text, Whole
from payment_sandbox.orders.refusals import VIOLATIONS_MAX, Invalid

FORMS_MAX: Final = 256

Reader = Callable[[Any], Any]


class NeedsMarshmallow(Exception):
    """The value may be wrong or incomplete, so marshmallow must parse it."""


def parse_quickly(form: Form, data: Any) -> dict[str, Any] | None:
    """Parse a valid body without unknown keys; return None if marshmallow must parse the body."""
    try:
        loaded: dict[str, Any] = _reader(form)(data)
    except NeedsMarshmallow:
        return None
    return loaded


def read(form: Form, data: Any) -> dict[str, Any]:
    """Parse an object in which every key must be known.

    Raises:
        Invalid: lists all violations.
    """
    valid = parse_quickly(form, data)
    if valid is not None:
        return valid
    loaded, violations = load(form, data)
    remaining = VIOLATIONS_MAX - len(violations)
    violations += [unknown.violation() for unknown in islice(unknown_keys(form, data), remaining)]
    if violations:
        raise Invalid(violations)
    return loaded


@lru_cache(maxsize=FORMS_MAX)
def _reader(form: Form) -> Reader:
    """Build the reader of objects with the form's fields, in their order."""
    kinds = {name: kind for name, kind in hook_kinds(form).items() if kind != REPAIR_HOOK}
    if any(kind != CHECK_HOOK for kind in kinds.values()):
        return _fall_back
    return _object_reader(form, [getattr(form, name) for name in kinds])


def _object_reader(form: Form, checks: list[Callable[..., Any]]) -> Reader:
    known = [
        (field.data_key or name, field.attribute or name, _value_reader(field), field.load_default)
        for name, field in form.load_fields.items()
    ]
    names = frozenset(name for name, *_ in known)
    required = frozenset(field.data_key or name for name, field in form.load_fields.items() if field.required)

    def read(data: Any) -> dict[str, Any]:
        if type(data) is not dict or not names.issuperset(data) or not required.issubset(data):
            raise NeedsMarshmallow
        loaded = {}
        for name, attribute, value_of, default in known:
            if name in data:
                loaded[attribute] = value_of(data[name])
            elif default is not missing:
                loaded[attribute] = default() if callable(default) else default
        for check in checks:
            _call_or_fall_back(check, loaded)
        return loaded

    return read


def _value_reader(field: Any) -> Reader:
    """Build the reader of a field: a fast reader for a known type, otherwise the field's own."""
    build = BUILDERS.get(type(field))
    return build(field) if build is not None and not field.allow_none else _field_reader(field)


def _field_reader(field: Any) -> Reader:
    def read(value: Any) -> Any:
        return _call_or_fall_back(field.deserialize, value)

    return read


def _call_or_fall_back(function: Callable[..., Any], *arguments: Any) -> Any:
    try:
        return function(*arguments)
    except ValidationError:
        raise NeedsMarshmallow from None


def _type_reader_builder(kind: type) -> Callable[[Any], Reader]:
    """Build readers of a single JSON type, which refuse equal values of other types, such as 1 for true."""

    def build(field: Any) -> Reader:
        valid = [_validation(validator) for validator in field.validators]

        def read(value: Any) -> Any:
            if type(value) is not kind or not all(is_valid(value) for is_valid in valid):
                raise NeedsMarshmallow
            return value

        def read_plain(value: Any) -> Any:
            if type(value) is not kind:
                raise NeedsMarshmallow
            return value

        return read if valid else read_plain

    return build


def _validation(validator: Any) -> Callable[[Any], bool]:
    if isinstance(validator, validate.Range) and validator.min_inclusive and validator.max_inclusive:
        low, high = validator.min, validator.max
        return lambda value: (low is None or value >= low) and (high is None or value <= high)
    return lambda value: _call_or_fall_back(validator, value) is not False


def _choice_reader(field: Any) -> Reader:
    words = frozenset(field.choices)

    def read(value: Any) -> Any:
        if type(value) is not str or value not in words:
            raise NeedsMarshmallow
        return value

    return read


def _items_reader(field: Any) -> Reader:
    value_of, least, most = _value_reader(field.inner), field.least, field.most

    def read(value: Any) -> Any:
        if type(value) is not list or len(value) < least or (most is not None and len(value) > most):
            raise NeedsMarshmallow
        return [value_of(item) for item in value]

    return read


def _part_reader(field: Any) -> Reader:
    return _reader(field.schema) if not field.many else _fall_back


def _free_object_reader(field: Any) -> Reader:
    is_free = field.key_field is None and field.value_field is None
    copied = _type_reader_builder(dict)(field)
    if isinstance(field.value_field, FormPart):
        key_of, value_of = _value_reader(field.key_field), _value_reader(field.value_field)
        return lambda value: {key_of(key): value_of(item) for key, item in copied(value).items()}
    return (lambda value: dict(copied(value))) if is_free else _field_reader(field)


def _fall_back(value: Any) -> Any:
    raise NeedsMarshmallow


BUILDERS: Final[dict[type, Callable[[Any], Reader]]] = {
    Text: _type_reader_builder(str),
    Choice: _choice_reader,
    Whole: _type_reader_builder(int),
    Cents: _type_reader_builder(int),
    Flag: _type_reader_builder(bool),
    Anything: _free_object_reader,
    Items: _items_reader,
    FormPart: _part_reader,
}
"""The builders of readers, by exact class, because a subclass may parse differently."""
