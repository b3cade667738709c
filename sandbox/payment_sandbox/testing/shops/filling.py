"""Reads and changes the values of a submitted form: a whole number, an amount, or a choice."""

import re
from collections.abc import Mapping, Sequence
from html.parser import HTMLParser
from typing import Final, NamedTuple
from urllib.parse import quote_plus

from payment_sandbox.scenarios.variation import SubmittedForm

Choices = Mapping[str, Sequence[str]]
"""The possible values of each field, in the order of the page."""

_END: Final = rb"(?=\"?\s*(?:[&,}\]]|\r\n--|$))"
_NUMBER: Final = re.compile(rb"(?<![^=:,\[\s])([1-9]\d{0,5})(?=\s*(?:[&,}\]]|\r\n--|$))")
_AMOUNT: Final = re.compile(rb"(?<![^=:,\[\s\"])(\d{1,6})([.,]|%2C)(\d\d)" + _END)
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
        """Leave a select."""
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
        return SubmittedForm(
            _NUMBER.search(self.body) is not None,
            _AMOUNT.search(self.body) is not None,
            with_other_choice(self) != self.body,
        )


def with_number(form: FormBody, more: int) -> bytes:
    """Add ``more`` to the first whole number in a form."""
    return _NUMBER.sub(lambda number: str(int(number[1]) + more).encode(), form.body, count=1)


def with_cents(form: FormBody, more: int) -> bytes:
    """Add ``more`` cents to the first amount in a form, such as 12.50; an amount of 0.00 is not reduced."""

    def changed(amount: re.Match[bytes]) -> bytes:
        cents = max(0, int(amount[1] + amount[3]) + more)
        return b"%d%s%02d" % (cents // CENTS_PER_UNIT, amount[2], cents % CENTS_PER_UNIT)

    return _AMOUNT.sub(changed, form.body, count=1)


def with_other_choice(form: FormBody) -> bytes:
    """Replace the last choice of a form, which usually is the payment method, with the next option."""
    for name, values in reversed(list(form.choices.items())):
        for number, value in enumerate(values):
            other = values[(number + 1) % len(values)]
            found = _value_of(name, value, form.body).search(form.body)
            if found is not None and other != value:
                encoded = other if _is_plain(form.body) else quote_plus(other)
                return form.body[: found.start(1)] + encoded.encode() + form.body[found.end(1) :]
    return form.body


def _is_plain(body: bytes) -> bool:
    """Return whether values are not encoded: in JSON and multipart."""
    return body.lstrip().startswith((b"{", b"[", b"--"))


def _value_of(name: str, value: str, body: bytes) -> re.Pattern[bytes]:
    """Return the pattern of a field with this value, in the encoding of a body."""
    if _is_plain(body):
        field, text = (re.escape(each.encode()) for each in (name, value))
        json, multipart = rb'"%s"\s*:\s*"' % field, rb'name="%s"\r\n(?:[^\r\n]+\r\n)*\r\n' % field
        return re.compile(rb'(?:%s|%s)(%s)(?="|\r\n--)' % (json, multipart, text))
    field, text = (re.escape(quote_plus(each).encode()) for each in (name, value))
    return re.compile(rb"(?:^|&)%s=(%s)(?=&|$)" % (field, text))
