"""The field types of forms; each error message states the expected value."""

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from math import inf
from typing import Any, Final

from marshmallow import ValidationError, fields, missing, validate

from payment_sandbox.forms.base import Problem, did_you_mean, entry_violations, nearest_word
from payment_sandbox.forms.merchant_urls import url_problem
from payment_sandbox.kernel.patterns import Pattern
from payment_sandbox.kernel.times import Period, PeriodError
from payment_sandbox.orders.amounts import AMOUNT_CENTS_MAX
from payment_sandbox.orders.refusals import VIOLATIONS_MAX

SECONDS_MAX: Final = 60
KEYS_MAX: Final = 1000  # the maximum of an object whose values are validated
COMMON_MESSAGES: Final = {"required": "is required", "null": "must not be null"}


def _describe(options: dict[str, Any], **metadata: Any) -> dict[str, Any]:
    """Add metadata for the API description to the options."""
    return {**options, "metadata": {**metadata, **options.get("metadata", {})}}


class DescribedField(fields.Field):  # type: ignore[type-arg] # Field is not generic in marshmallow 3
    """A field with a description, ``about``, for the API description, editors and documentation."""

    def __init__(self, *parts: Any, about: str = "", **options: Any) -> None:
        if about:
            options = _describe(options, description=about)
        super().__init__(*parts, **options)

    def deserialize(self, value: Any, attr: str | None = None, data: Any = None, **options: Any) -> Any:
        """Parse a value; marshmallow's own method is needed only for absent values, nulls and validators."""
        if value is missing or value is None or self.validators:
            return super().deserialize(value, attr, data, **options)
        return self._deserialize(value, attr, data, **options)


class PatternMatch(validate.Validator):
    """Requires the whole text to match a pattern."""

    def __init__(self, pattern: str, error: str) -> None:
        self._pattern = Pattern(pattern)
        self._error = error

    def __call__(self, value: str) -> str:
        """Return the text, or refuse it."""
        if self._pattern.fullmatch(value) is None:
            raise ValidationError(self._error)
        return value


class Text(DescribedField, fields.String):
    """A string that matches ``pattern``, which ``expected`` describes in words."""

    plain_type = str
    default_error_messages = {
        **COMMON_MESSAGES,
        "invalid": "must be a string",
        "invalid_utf8": "must be UTF-8",
    }

    def __init__(self, *, pattern: str | None = None, expected: str = "", **options: Any) -> None:
        if pattern is not None:  # for the API description: JSON Schema has no \\Z
            options = _describe(options, pattern=f"^(?:{pattern})$")
        super().__init__(**options)
        if pattern is not None:
            self.validators.append(PatternMatch(pattern, f"must be {expected}"))


class Label(Text):
    """A name or a description."""

    LENGTH_MAX: Final = 1000

    def __init__(self, **options: Any) -> None:
        length = validate.Length(max=self.LENGTH_MAX, error="must have at most {max:,} characters")
        super().__init__(validate=length, **options)


class AnyValue(DescribedField, fields.Raw):
    """Any JSON value, stored and repeated in responses."""

    def __init__(self, about: str = "Any value; responses repeat it.") -> None:
        super().__init__(about=about, allow_none=True)


class Choice(Text):
    """One of a fixed set of words."""

    def __init__(self, choices: Sequence[str], **options: Any) -> None:
        self.choices = list(choices)
        super().__init__(**_describe(options, enum=self.choices))

    def _deserialize(self, value: Any, attr: str | None, data: Any, **options: Any) -> Any:
        word = super()._deserialize(value, attr, data, **options)
        if word in self.choices:
            return self.choices[self.choices.index(word)]  # one text for all records
        nearest = self.suggest(word)
        message = f"must be one of: {', '.join(self.choices)}{did_you_mean(nearest)}"
        raise ValidationError(Problem(message, self.choices, nearest))

    def suggest(self, word: str) -> str | None:
        """Return the closest choice; None if no choice is close."""
        return nearest_word(word, self.choices)


class Whole(DescribedField, fields.Integer):
    """A whole number; 12.95, "12" and true are refused."""

    default_error_messages = {
        **COMMON_MESSAGES,
        "invalid": "must be a whole number",
        "too_large": "is too large",
    }

    def __init__(self, low: int | None = None, high: int | None = None, **options: Any) -> None:
        super().__init__(strict=True, **options)
        if low is not None or high is not None:
            bounds = [
                f"at least {low}" if low is not None else "",
                f"at most {high}" if high is not None else "",
            ]
            error = f"must be {' and '.join(filter(None, bounds))}"
            self.validators.append(validate.Range(low, high, error=error))
        self.low = -inf if low is None else low
        self.high = inf if high is None else high

    def deserialize(self, value: Any, attr: str | None = None, data: Any = None, **options: Any) -> Any:
        """Return a valid number at once."""
        is_valid = type(value) is int and self.low <= value <= self.high
        return value if is_valid else super().deserialize(value, attr, data, **options)


class Number(DescribedField, fields.Float):
    """A number, with or without decimals."""

    default_error_messages = {**COMMON_MESSAGES, "invalid": "must be a number", "special": "must be a number"}

    def _deserialize(self, value: Any, attr: str | None, data: Any, **options: Any) -> Any:
        if not isinstance(value, int | float) or isinstance(value, bool):
            raise self.make_error("invalid", input=value)
        return super()._deserialize(value, attr, data, **options)


class Seconds(Number):
    """A real duration in seconds, at most a minute."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        error = f"must be more than 0 and at most {SECONDS_MAX} seconds"
        self.validators.append(validate.Range(0, SECONDS_MAX, min_inclusive=False, error=error))


class Cents(Whole):
    """An amount: whole cents, 1 to 2^53-1 (SET-11)."""

    default_error_messages = {"invalid": "must be a whole number of cents, such as 1295"}

    def __init__(self, low: int = 1, high: int = AMOUNT_CENTS_MAX, **options: Any) -> None:
        super().__init__(low, high, **options)


class Flag(DescribedField, fields.Boolean):
    """True or false; words and numbers such as "yes" or 1 are refused."""

    plain_type = bool
    default_error_messages = {**COMMON_MESSAGES, "invalid": "must be true or false"}

    def _deserialize(self, value: Any, attr: str | None, data: Any, **options: Any) -> bool:
        if not isinstance(value, bool):
            raise self.make_error("invalid", input=value)
        return value


class Yes(Flag):
    """A flag that can only be true; omit it for false."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**_describe(options, enum=[True]))

    def _deserialize(self, value: Any, attr: str | None, data: Any, **options: Any) -> bool:
        if not super()._deserialize(value, attr, data, **options):
            raise ValidationError("must be true, or omitted")
        return True


class Anything(DescribedField, fields.Dict):
    """An object with any keys; at most 1,000 keys if the values are validated."""

    default_error_messages = {**COMMON_MESSAGES, "invalid": "must be an object"}

    def _deserialize(self, value: Any, attr: str | None, data: Any, **options: Any) -> Any:
        if self.value_field is not None and isinstance(value, Mapping) and len(value) > KEYS_MAX:
            raise ValidationError(f"must have at most {KEYS_MAX} keys, but has {len(value)}")
        try:
            return super()._deserialize(value, attr, data, **options)  # type: ignore[no-untyped-call]
        except ValidationError as error:
            if not isinstance(error.messages, dict):
                raise
            plain = {key: entry_violations(problems) for key, problems in error.messages.items()}
            raise ValidationError(plain, valid_data=error.valid_data) from None


class Items(DescribedField, fields.List):  # type: ignore[type-arg] # List is not generic in marshmallow 3
    """A list of ``least`` to ``most`` items; reports a wrong length together with invalid items.

    Parsing stops after ``wrong_max`` invalid items, the maximum in a report.
    """

    default_error_messages = {**COMMON_MESSAGES, "invalid": "must be a list"}

    def __init__(
        self,
        inner: Any,
        *,
        least: int = 0,
        most: int | None = None,
        wrong_max: int = VIOLATIONS_MAX,
        **options: Any,
    ) -> None:
        super().__init__(inner, **options)
        self.least, self.most, self.wrong_max = least, most, wrong_max

    def _deserialize(self, value: Any, attr: str | None, data: Any, **options: Any) -> list[Any]:
        if not isinstance(value, list):
            raise self.make_error("invalid")
        errors: dict[Any, Any] = {}
        items: list[Any] = []
        if len(value) < self.least or (self.most is not None and len(value) > self.most):
            # "_schema" comes first, to be reported first
            errors["_schema"] = [f"must have {self._bounds()} item(s), but has {len(value)}"]
        for index, item in enumerate(self._items_to_parse(value)):
            try:
                items.append(self.inner.deserialize(item, **options))
            except ValidationError as error:
                errors[index] = error.messages
                items += [] if error.valid_data is None else [error.valid_data]
                if len(errors) >= self.wrong_max:
                    break
        if errors:
            raise ValidationError(errors, valid_data=items)
        return items

    def _items_to_parse(self, value: list[Any]) -> list[Any]:
        """Return the items to parse: all, or only the first items of a list that is too long."""
        return value if self.most is None else value[: self.most + self.wrong_max]

    def _bounds(self) -> str:
        least = f"at least {self.least}" if self.least else ""
        most = f"at most {self.most}" if self.most is not None else ""
        return " and ".join(filter(None, [least, most]))


class OneOrMany(Items):
    """A list of 1 to 100 items, or a single item without a list."""

    def __init__(self, inner: Any, **options: Any) -> None:
        super().__init__(inner, least=1, most=100, **options)

    def _deserialize(self, value: Any, attr: str | None, data: Any, **options: Any) -> list[Any]:
        items = value if isinstance(value, list | dict) else [value]
        return super()._deserialize(items, attr, data, **options)


class FormPart(DescribedField, fields.Nested):
    """An object that a separate form parses."""

    default_error_messages = {**COMMON_MESSAGES, "type": "must be an object"}

    def _deserialize(self, value: Any, *context: Any, **options: Any) -> Any:
        return self.schema.load(value)


ZERO_PERIOD: Final = "must be longer than zero"
ZEROS_OF_DATE_FNS: Final = "P0Y0M0DT0H0M0S"


class PeriodText(Text):
    """An ISO 8601 duration above zero, in its original notation (SET-20, SET-21)."""

    def __init__(self, *, zero: bool = False, **options: Any) -> None:
        super().__init__(**_describe(options, format="duration"))
        self.zero = zero

    def _deserialize(self, value: Any, attr: str | None, data: Any, **options: Any) -> str:
        is_number = type(value) is int  # of seconds, perhaps
        text: str = str(value) if is_number else super()._deserialize(value, attr, data, **options)
        try:
            period = Period.parse(text)
        except PeriodError as error:
            message = f"must be an ISO 8601 duration such as PT30M or P7D{did_you_mean(error.nearest)}"
            raise ValidationError(Problem(message, None, error.nearest)) from None
        if period.is_zero and not self.zero:
            cause = "; date-fns drops weeks, so {weeks: 1} becomes zero" if text == ZEROS_OF_DATE_FNS else ""
            raise ValidationError(f"{ZERO_PERIOD}{cause}")
        return text


class DateTime(Text):
    """An ISO 8601 date and time; in UTC if it has no offset."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**_describe(options, format="date-time"))

    def _deserialize(self, value: Any, attr: str | None, data: Any, **options: Any) -> Any:
        text = super()._deserialize(value, attr, data, **options)
        try:
            moment = datetime.fromisoformat(text)
            return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
        except (ValueError, OverflowError):
            raise ValidationError("must be a date and time such as 2027-01-01T00:00:00Z") from None


class Birthdate(Text):
    """A date, stored as a string."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**_describe(options, format="date"))

    def _deserialize(self, value: Any, attr: str | None, data: Any, **options: Any) -> Any:
        text = super()._deserialize(value, attr, data, **options)
        try:
            if len(text) != len("YYYY-MM-DD"):
                raise ValueError(text)
            date.fromisoformat(text)
        except ValueError:
            raise ValidationError("must be a date, YYYY-MM-DD") from None
        return text


class WebUrl(Text):
    """An http or https address with a host and without credentials."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**_describe(options, format="uri"))

    def _deserialize(self, value: Any, attr: str | None, data: Any, **options: Any) -> Any:
        text = super()._deserialize(value, attr, data, **options)
        problem = url_problem(text)
        if problem:
            raise ValidationError(f"must be a web address such as https://shop.example/paid: {problem}")
        return text


def without_nulls(value: Any) -> Any:
    """Drop nulls, at every level (SET-15)."""
    if isinstance(value, Mapping):
        return {key: without_nulls(inner) for key, inner in value.items() if inner is not None}
    if isinstance(value, list):
        return [without_nulls(inner) for inner in value if inner is not None]
    return value
