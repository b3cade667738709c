"""Reads and changes values in a submitted form: a whole number, an amount, or a choice."""

import re
from collections.abc import Mapping, Sequence
from html.parser import HTMLParser
from typing import Final, NamedTuple
from urllib.parse import quote_plus

from payment_sandbox.scenarios.variation import SubmittedForm

Choices = Mapping[str, Sequence[str]]
"""The possible values of each field, in page order."""

_VALUE_END: Final = rb"(?=\"?\s*(?:[&,}\]]|\r\n--|$))"
_NUMBER_PATTERN: Final = re.compile(rb"(?<![^=:,\[\s])([1-9]\d{0,5})(?=\s*(?:[&,}\]]|\r\n--|$))")
_AMOUNT_PATTERN: Final = re.compile(rb"(?<![^=:,\[\s\"])(\d{1,6})([.,]|%2C)(\d\d)" + _VALUE_END)
CENTS_PER_UNIT: Final = 100


class _ChoiceReader(HTMLParser):
    """Reads the options of selects and radio buttons."""

    def __init__(self) -> None:
        super().__init__()
        self.choices: dict[str, list[str]] = {}
        self._select = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Read an option or a radio button with a value, if enabled."""
        values = {name: value or "" for name, value in attrs}
        if tag == "select":
            self._select = values.get("name", "")
        elif tag == "option":
            self._add(self._select, values)
        elif tag == "input" and values.get("type", "").lower() == "radio":
            self._add(values.get("name", ""), values)

    def _add(self, name: str, values: Mapping[str, str]) -> None:
        value = values.get("value")
        if name and value and "disabled" not in values:
            self.choices.setdefault(name, []).append(value)

    def handle_endtag(self, tag: str) -> None:
        """Record the end of a select."""
        if tag == "select":
            self._select = ""


def read_choices(html: str) -> Choices:
    """Return the choices of a page's forms: options with a ``value``, and radio buttons."""
    reader = _ChoiceReader()
    reader.feed(html)
    return {name: list(dict.fromkeys(values)) for name, values in reader.choices.items()}


class FormBody(NamedTuple):
    """A submitted form, encoded as a query, JSON or multipart, and the choices of the pages so far."""

    body: bytes
    choices: Choices

    @property
    def details(self) -> SubmittedForm:
        """The kinds of values that can be changed."""
        number = _NUMBER_PATTERN.search(self.body)
        return SubmittedForm(
            number is not None,
            _AMOUNT_PATTERN.search(self.body) is not None,
            change_choice(self) != self.body,
            number is not None and int(number[1]) > 1,
        )


def add_to_number(form: FormBody, difference: int) -> bytes:
    """Add ``difference`` to the first whole number in a form."""
    return _NUMBER_PATTERN.sub(lambda number: str(int(number[1]) + difference).encode(), form.body, count=1)


def change_number_to_one(form: FormBody) -> bytes:
    """Replace the first whole number in a form with 1."""
    return _NUMBER_PATTERN.sub(b"1", form.body, count=1)


def add_cents(form: FormBody, difference: int) -> bytes:
    """Add ``difference`` cents to the first amount in a form, such as 12.50; the sum is at least 0.00."""

    def increase(amount: re.Match[bytes]) -> bytes:
        cents = max(0, int(amount[1] + amount[3]) + difference)
        return b"%d%s%02d" % (cents // CENTS_PER_UNIT, amount[2], cents % CENTS_PER_UNIT)

    return _AMOUNT_PATTERN.sub(increase, form.body, count=1)


def change_choice(form: FormBody) -> bytes:
    """Replace the last choice in a form, usually the payment method, with the next option."""
    for name, values in reversed(list(form.choices.items())):
        for number, value in enumerate(values):
            other = values[(number + 1) % len(values)]
            match = _field_pattern(name, value, form.body).search(form.body)
            if match is not None and other != value:
                encoded = other if _is_plain(form.body) else quote_plus(other)
                return form.body[: match.start(1)] + encoded.encode() + form.body[match.end(1) :]
    return form.body


def _is_plain(body: bytes) -> bool:
    """Return whether the body has unencoded values, as in JSON and multipart."""
    return body.lstrip().startswith((b"{", b"[", b"--"))


def _field_pattern(name: str, value: str, body: bytes) -> re.Pattern[bytes]:
    """Return a pattern that finds a field with this value in a body."""
    if _is_plain(body):
        field, text = (re.escape(each.encode()) for each in (name, value))
        json, multipart = rb'"%s"\s*:\s*"' % field, rb'name="%s"\r\n(?:[^\r\n]+\r\n)*\r\n' % field
        return re.compile(rb'(?:%s|%s)(%s)(?="|\r\n--)' % (json, multipart, text))
    field, text = (re.escape(quote_plus(each).encode()) for each in (name, value))
    return re.compile(rb"(?:^|&)%s=(%s)(?=&|$)" % (field, text))
