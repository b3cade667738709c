"""Answers in a form in which two servers agree: without identifiers, times and addresses of their own."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from payment_sandbox.kernel.patterns import UUID
from payment_sandbox_verify.rules import INDEX

TIME: Final = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-]\d\d:?\d\d)?")
SPECIFIC: Final = re.compile(  # must match in linear time, because strings may be long
    r"\b\w+://\S*|\d{4}-\d\d-\d\d[T ][\d:.]+\S*|\b[0-9a-f]{8,}(?:-\w{1,40})?\b"
)
DIGIT: Final = re.compile(r"\d")
TEXT_LENGTH_MAX: Final = 100_000
TIME_LENGTH_MAX: Final = 40
OWN_ADDRESSES: Final = ("payment_url", "order_url", "qr_url", "issuer_authentication_url")
UUID_FORM: Final = ", a UUID"
UNORDERED_LISTS: Final = ("flags", "order_line_details")
ACCOUNT_IDENTIFIERS: Final = ("merchant_id", "project_id")  # the same in all answers
IDENTIFIER_KEYS: Final = (
    *("id", "order_id", "refund_of_order_id", "first_authorised_transaction_id", *ACCOUNT_IDENTIFIERS),
    *("vault_token", "reference", "transaction_id", "bankqr_id", "issuer_id"),
)
OWN_TEXTS: Final = (  # texts of which only the form has a rule
    *("truncated_pan", "card_expiry", "consumer_bic", "consumer_iban", "creditor_bic", "creditor_iban"),
    *("list_type", "payment_method_brand"),
)
FIXED_LENGTHS: Final = ("card_expiry",)
OWN_VALUES: Final = (  # values of which only the type has a rule
    *("cardholder_name", "consumer_city", "consumer_name", "beneficiary", "merchant_sub_id", "msc_amount"),
    *("creditor_account_holder_name", "creditor_account_holder_city", "creditor_account_holder_country"),
    *("reason", "customer_message"),
)


class ShownTime(NamedTuple):
    """A time: its text, its spelling with ``d`` for each digit, and its distance from the start."""

    text: str
    spelling: str
    seconds: float | None = None
    at: datetime | None = None

    def __repr__(self) -> str:
        distance = "" if self.seconds is None else f" ({self.seconds:+.0f} s from the start)"
        return f"{self.text!r}{distance}"


class Gap(NamedTuple):
    """The seconds between two webhooks."""

    seconds: float

    def __repr__(self) -> str:
        return f"{self.seconds:.0f} s"


class Named(str):
    """An identifier by the step in which it appeared first, or the form of a value."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def without_form(name: Any) -> str:
    """Return the name of an identifier, without its form."""
    return str(name).replace(UUID_FORM, "")


class Names:
    """The identifiers of one scene on one server, named by the step and the place of their first appearance.

    The place does not depend on the order in which a server writes the keys of an object.
    """

    def __init__(self, start: datetime, own_texts: Mapping[str, str] | None = None) -> None:
        """``own_texts`` maps further texts of the server, such as the address for webhooks, to names."""
        self.start = start
        self._names: dict[str, Named] = {text: Named(name) for text, name in (own_texts or {}).items()}
        self.step = ""  # after which the identifiers are named that appear from now on

    def name(self, value: str, place: str) -> Named:
        """Return the name of an identifier; where it appears first, also whether it is a UUID."""
        if value in self._names:
            return self._names[value]
        if place.rpartition(".")[2] in ACCOUNT_IDENTIFIERS:
            place = place.rpartition(".")[2]
            number = 1 + sum(name.startswith(f"<{place} ") for name in self._names.values())
            name = f"<{place} {number}>"
        else:
            name = f"<{place} of {self.step}>"
        self._names[value] = Named(name)
        return Named(f"{name[:-1]}{UUID_FORM}>") if UUID.fullmatch(value) else Named(name)

    def normalise(self, value: Any, place: str = "") -> Any:
        """Return a JSON value without what is this server's own."""
        key = INDEX.sub("", place).rpartition(".")[2]
        if key in OWN_VALUES:
            return value if value is None else Named(f"<{type(value).__name__}>")
        if isinstance(value, dict):
            return self._normalise_object(value, place)
        if isinstance(value, list):
            items = [self.normalise(item, f"{place}[{number}]") for number, item in enumerate(value)]
            return sorted(items, key=identity) if key in UNORDERED_LISTS else items
        return self._normalise_text(value, key, place) if isinstance(value, str) else value

    def _normalise_object(self, value: dict[str, Any], place: str) -> dict[str, Any]:
        """Name the identifiers of an object before those of the objects in it."""
        is_event = "occurred" in value  # no call uses the id of an event
        form = UUID_FORM if UUID.fullmatch(str(value.get("id"))) else ""
        own = {"id": Named(f"<an id{form}>")} if is_event else {}
        ordered = sorted(
            {**value, **own}.items(), key=lambda each: (isinstance(each[1], dict | list), each[0])
        )
        return {name: self.normalise(inner, f"{place}.{name}".lstrip(".")) for name, inner in ordered}

    def _normalise_text(self, text: str, key: str, place: str) -> Any:
        if isinstance(text, Named) or text in self._names:
            return self._names.get(text, text)
        if key in OWN_ADDRESSES:
            return Named("an address with a scheme" if "://" in text else "an address without a scheme")
        if key in OWN_TEXTS:
            return Named(f"<{DIGIT.sub('d', text) if key in FIXED_LENGTHS else form_of(text)}>")
        if key in IDENTIFIER_KEYS or UUID.fullmatch(text):
            return self.name(text, place or "id")
        return self._moment(text) if TIME.fullmatch(text[:TIME_LENGTH_MAX]) else text

    def _moment(self, text: str) -> Any:
        spelling = DIGIT.sub("d", text)
        try:
            at = datetime.fromisoformat(text)
        except ValueError:
            return ShownTime(text, spelling)
        at = at if at.tzinfo is not None else at.replace(tzinfo=UTC)
        return ShownTime(text, spelling, (at - self.start).total_seconds(), at)


def identity(item: Any) -> str:
    """Return what tells an item of a list from the others."""
    names = ("merchant_order_line_id", "name", "status", "event")
    return (
        " ".join(str(item[name]) for name in names if name in item) if isinstance(item, dict) else str(item)
    )


def anonymize(text: str) -> str:
    """Remove identifiers, URLs and times, which differ between services, from a message."""
    return SPECIFIC.sub("", UUID.sub("", text))


def form_of(text: str) -> str:
    """Return the form of a text: its runs of letters and digits, each as one character."""
    short = text[:TEXT_LENGTH_MAX]
    return re.sub(r"[a-z]+", "a", re.sub(r"[A-Z]+", "A", re.sub(r"\d+", "1", short)))
