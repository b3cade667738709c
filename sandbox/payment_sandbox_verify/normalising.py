"""Answers in a form in which two servers agree: without identifiers, times and addresses of their own."""

import re
from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from payment_sandbox.kernel.patterns import UUID

TIME: Final = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-]\d\d:?\d\d)?")
SPECIFIC: Final = re.compile(  # must match in linear time, because strings may be long
    r"\b\w+://\S*|\d{4}-\d\d-\d\d[T ][\d:.]+\S*|\b[0-9a-f]{8,}(?:-\w{1,40})?\b"
)
TEXT_LENGTH_MAX: Final = 100_000
TIME_LENGTH_MAX: Final = 40
OWN_ADDRESSES: Final = ("payment_url", "order_url", "qr_url", "issuer_authentication_url")
IDENTIFIER_KEYS: Final = ("id", "vault_token", "reference", "transaction_id", "bankqr_id", "issuer_id")
ACCOUNT_IDENTIFIERS: Final = ("merchant_id", "project_id")  # the same in all answers
OWN_TEXTS: Final = (  # texts of which only the form has a rule
    *("truncated_pan", "card_expiry", "consumer_bic", "consumer_iban", "creditor_bic", "creditor_iban"),
    *("list_type", "payment_method_brand"),
)
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


class Names:
    """The identifiers of one scene on one server, named by the step in which each appeared first."""

    def __init__(self, start: datetime, own_texts: Mapping[str, str] | None = None) -> None:
        """``own_texts`` maps further texts of the server, such as the address for webhooks, to names."""
        self.start = start
        self._names: dict[str, Named] = {text: Named(name) for text, name in (own_texts or {}).items()}
        self._step = ""
        self._counts: Counter[str] = Counter()

    def begin_step(self, step: str) -> None:
        """Name the identifiers that appear from now on after this step."""
        self._step = step
        self._counts.clear()

    def name(self, value: str, kind: str) -> Named:
        """Return the name of an identifier; the name has its form if it is a UUID."""
        if value not in self._names:
            form = ", a UUID" if UUID.fullmatch(value) else ""
            if kind in ACCOUNT_IDENTIFIERS:
                place = str(sum(name.startswith(f"<{kind} ") for name in self._names.values()) + 1)
            else:
                self._counts[kind] += 1
                place = f"{self._counts[kind]} of {self._step}"
            self._names[value] = Named(f"<{kind} {place}{form}>")
        return self._names[value]

    def normalise(self, value: Any, key: str = "") -> Any:
        """Return a JSON value without what is this server's own."""
        if key in OWN_VALUES:
            return value if value is None else Named(f"<{type(value).__name__}>")
        if isinstance(value, dict):
            is_event = "occurred" in value  # no call uses the id of an event
            form = "a UUID" if UUID.fullmatch(str(value.get("id"))) else "no UUID"
            own = {"id": Named(f"<an id, {form}>")} if is_event else {}
            return {name: self.normalise(inner, name) for name, inner in {**value, **own}.items()}
        if isinstance(value, list):
            return [self.normalise(item, key) for item in value]
        return self._normalise_text(value, key) if isinstance(value, str) else value

    def _normalise_text(self, text: str, key: str) -> Any:
        if isinstance(text, Named) or text in self._names:
            return self._names.get(text, text)
        if key in OWN_ADDRESSES:
            return Named("an address with a scheme" if "://" in text else "an address without a scheme")
        if key in OWN_TEXTS:
            return Named(f"<{form_of(text)}>")
        if key in IDENTIFIER_KEYS or UUID.fullmatch(text):
            return self.name(text, key or "id")
        return self._moment(text) if TIME.fullmatch(text[:TIME_LENGTH_MAX]) else text

    def _moment(self, text: str) -> Any:
        spelling = re.sub(r"\d", "d", text)
        try:
            at = datetime.fromisoformat(text)
        except ValueError:
            return ShownTime(text, spelling)
        at = at if at.tzinfo is not None else at.replace(tzinfo=UTC)
        return ShownTime(text, spelling, (at - self.start).total_seconds(), at)


def anonymize(text: str) -> str:
    """Remove identifiers, URLs and times, which differ between services, from a message."""
    return SPECIFIC.sub("", UUID.sub("", text))


def form_of(text: str) -> str:
    """Return the form of a text: its runs of letters and digits, each as one character."""
    short = text[:TEXT_LENGTH_MAX]
    return re.sub(r"[a-z]+", "a", re.sub(r"[A-Z]+", "A", re.sub(r"\d+", "1", short)))
