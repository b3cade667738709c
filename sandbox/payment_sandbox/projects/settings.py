"""The settings of a project: each is declared once, for requests, the dashboard and the documentation."""

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, ClassVar, Final, NamedTuple

from marshmallow import ValidationError, validate

from payment_sandbox.forms import (
    Choice,
    Flag,
    Form,
    FormPart,
    Items,
    PeriodText,
    Text,
    WebUrl,
    Whole,
    checks,
    read,
)
from payment_sandbox.forms.fields import Anything, AnyValue, Label, Number
from payment_sandbox.kernel.times import Period
from payment_sandbox.methods import METHOD_NAMES
from payment_sandbox.methods.common import ISSUERS, Issuer
from payment_sandbox.orders.refusals import Invalid
from payment_sandbox.orders.webhooks import TIMEOUT_SECONDS

LIVE_MODE: Final = "live"
TEST_MODE: Final = "test"
LINES_DECIDE: Final = "lines"
AFTER_RESPONSE: Final = "after_response"
BEFORE_RESPONSE: Final = "before_response"
FEATURES: Final = ("cards_approved", "one_click_enabled", "recurring_enabled", "dynamic_descriptor_enabled")


ISSUER_ID: Final = "[A-Za-z0-9]{4,35}"


class IssuerForm(Form):
    """A bank that customers can choose."""

    id = Text(required=True, pattern=ISSUER_ID, expected="4 to 35 letters and digits", about="Its BIC.")
    name = Text(about="Its name on the payment page; the id by default.")
    list_type = Text(about="Its group in the list.")


class IssuerPart(FormPart):
    """A bank, or only its id."""

    alternative_schema: ClassVar[dict[str, Any]] = {"type": "string", "pattern": f"^(?:{ISSUER_ID})$"}

    def _deserialize(self, value: Any, *context: Any, **options: Any) -> Any:
        read: Mapping[str, str] = super()._deserialize(
            {"id": value} if isinstance(value, str) else value, *context, **options
        )
        return Issuer(**{"name": read["id"], **read})._asdict()


REFERENCE_DATE: Final = datetime(2000, 1, 1, tzinfo=UTC)  # a reference date for adding a period


class Setting(NamedTuple):
    """A setting in forms, an example of its value, and the heading of the settings from it on."""

    field: Any
    example: Any
    heading: str | None


def setting(default: Any, form_field: Any, example: Any = None, *, heading: str | None = None) -> Any:
    """Declare a setting."""
    about = Setting(form_field, example, heading)
    return field(default_factory=lambda: copy(default), metadata={"setting": about})


def flag(default: bool, about: str, *, heading: str | None = None) -> Any:
    """Declare a setting that is true or false."""
    return setting(default, Flag(about=about), heading=heading)


def choice(choices: Sequence[str], about: str, *, heading: str | None = None) -> Any:
    """Declare a setting that is one of some words, the first by default."""
    return setting(choices[0], Choice(choices, about=about), heading=heading)


@dataclass(frozen=True)
class Settings:
    """The settings of a project: the permissions of a merchant, and the presentation of responses."""

    name: str = setting(
        "", Label(about="The merchant's name on the payment pages."), "Sock shop", heading="Project"
    )
    owner: str = setting(
        "", Label(about="The owner of the project: a person, a team or a CI job."), "the checkout team"
    )
    mode: str = choice(
        (TEST_MODE, LIVE_MODE), "test has the limits of test mode; in live, all methods work fully."
    )
    expires_after: str | None = setting(
        None,
        PeriodText(
            allow_none=True,
            about="Real time without calls after which a server deletes the project; null means never.",
        ),
        "P7D",
    )
    webhook_url: str | None = setting(
        None,
        WebUrl(
            allow_none=True, about="The URL for webhooks, unless an order has its own URL; null means none."
        ),
        "http://localhost:3000/webhook",
        heading="Webhooks",
    )
    webhook_timing: str = choice(
        (AFTER_RESPONSE, BEFORE_RESPONSE), "Whether webhooks are sent after the response or before it."
    )
    webhook_timeout: float = setting(
        TIMEOUT_SECONDS,  # SET-57
        Number(
            validate=validate.Range(0.1, 60.0, error="must be between {min} and {max}"),
            about="The real seconds that a webhook waits for the answer of the shop.",
        ),
        10,
    )
    payment_methods: Sequence[str] = setting(
        list(METHOD_NAMES),
        Items(Choice(METHOD_NAMES), about="The enabled methods; all by default."),
        heading="Payment methods",
    )
    aliases: Mapping[str, str] = setting(
        {},
        Anything(
            keys=Text(pattern="[A-Za-z0-9_-]{1,64}", expected="letters, digits, - and _"),
            values=Choice(METHOD_NAMES),
            about="The merchant's own names for methods, by name.",
        ),
        {"my-bank-button": "bank-redirect-nl"},
    )
    issuers: Sequence[Mapping[str, str]] = setting(
        [issuer._asdict() for issuer in ISSUERS],
        Items(
            IssuerPart(IssuerForm), least=1, most=100, about="The banks of bank-redirect-nl: ids or objects."
        ),
        ["INGBNL2A", {"id": "RABONL2U", "name": "Rabo"}],
    )
    issuer_required: bool = flag(
        True, "Whether bank-redirect-nl needs an issuer_id; without it, the payment page asks for the bank."
    )
    cards_approved: bool = flag(
        True,
        "Whether the merchant may take card payments, including those with stored cards.",
        heading="Cards",
    )
    one_click_enabled: bool = flag(True, "Whether cards can be stored for one-click payments.")
    recurring_enabled: bool = flag(True, "Whether cards can be stored for a recurring series.")
    dynamic_descriptor_enabled: bool = flag(True, "Whether card payments accept dynamic_descriptor.")
    absolute_urls: bool = flag(
        False, "Whether order_url and payment_url start with a scheme.", heading="Responses of the API"
    )
    reduced_customer: bool = flag(False, "Whether responses show only country and ip_address of a customer.")
    authorized_status: str = choice(
        ("completed", "accepted"), "The status of an authorized order that is not fully captured."
    )
    refund_mismatch: str = choice(
        ("refuse", LINES_DECIDE),
        "A refund by lines with another amount: it is refused, or the lines decide, with a warning.",
    )
    unknown_fields: str = choice(("drop", "reject"), "How unknown request keys are handled.")
    unknown_locale: str = choice(
        ("reject", "ignore"),
        "How a customer.locale that is not allowed is handled; ignore treats it as absent.",
    )
    numeric_ids: str = choice(
        ("reject", "text"),
        "How numbers are handled as merchant_order_id and merchant_order_line_id; text converts them.",
    )
    personal_data: str = choice(
        ("optional", "required"),
        "Whether pay-later-a and invoice-later-b need birthdate, gender and address of the customer.",
    )
    seed: int = setting(
        0,
        Whole(
            low=0,
            high=2**63 - 1,
            about="The same seed and the same requests give the same identifiers; 0 means the server's seed.",
        ),
        7,
    )
    newer_settings: Mapping[str, Any] = field(default_factory=dict)  # of a newer server; without effect
    forward_to: str | None = None  # the address to which a listener forwards all webhooks; no user sets it

    @cached_property
    def is_test(self) -> bool:
        """Whether payments are test payments."""
        return self.mode == TEST_MODE

    @cached_property
    def idle_seconds_max(self) -> float | None:
        """The real seconds without a call after which the project is deleted; None means never."""
        if self.expires_after is None:
            return None
        try:
            return (Period.parse(self.expires_after).after(REFERENCE_DATE) - REFERENCE_DATE).total_seconds()
        except OverflowError:  # beyond the calendar
            return None

    @cached_property
    def features(self) -> frozenset[str]:
        """The enabled features."""
        return frozenset(name for name in FEATURES if getattr(self, name))

    @cached_property
    def banks(self) -> tuple[Issuer, ...]:
        """The banks of ``bank-redirect-nl``."""
        return tuple(Issuer(**bank) for bank in self.issuers)

    @cached_property
    def method_names(self) -> tuple[str, ...]:
        """All names of methods in requests, including aliases."""
        return (*METHOD_NAMES, *self.aliases)

    @cached_property
    def presentation(self) -> str:
        """A part of ETags that identifies the presentation of responses."""
        return f"{'a' if self.absolute_urls else ''}{'r' if self.reduced_customer else ''}"

    def method(self, name: str) -> str | None:
        """Find a method by its name or alias."""
        return name if name in METHOD_NAMES else self.aliases.get(name)

    def webhook_url_of(self, order_url: str | None) -> str | None:
        """Return the URL for the webhooks of an order, which may have its own; None if there is none."""
        return order_url or self.webhook_url or self.forward_to

    @cached_property
    def document(self) -> dict[str, Any]:
        """All settings as plain data, which nobody changes."""
        return {name: getattr(self, name) for name in SETTINGS}

    @cached_property
    def stored(self) -> dict[str, Any]:
        """The document with the settings from a newer server, and the address of a listener."""
        listener = {"forward_to": self.forward_to} if self.forward_to is not None else {}
        return {**self.newer_settings, **listener, **self.document}


SETTINGS: Final[Mapping[str, Setting]] = {
    each.name: each.metadata["setting"] for each in fields(Settings) if each.metadata
}
DEFAULT_SETTINGS: Final = Settings()


class SettingsForm(Form.from_dict({name: each.field for name, each in SETTINGS.items()})):  # type: ignore[misc]
    """The settings of a project."""

    @checks(although_invalid=True)
    def refuse_method_names_as_aliases(self, data: Mapping[str, Any], sent: Any, **options: Any) -> None:
        """Refuse an alias that is the name of a method."""
        wrong = {
            alias: ["is the name of a method"] for alias in data.get("aliases", {}) if alias in METHOD_NAMES
        }
        if wrong:
            raise ValidationError({"aliases": wrong})


class NewProjectForm(SettingsForm):
    """The settings of a new project, and its initial clock and scenario."""

    clock = Text(about="running, frozen, or frozen@ with a time; by default, the clock option of the server.")
    scenario = AnyValue("The initial scenario: a name, or a whole scenario.")


SETTINGS_FORM: Final = SettingsForm()


def read_stored_settings(data: Mapping[str, Any], path: str) -> Settings:
    """Read stored settings; settings from a newer server are preserved but have no effect.

    Raises:
        Invalid: lists every invalid setting.
    """
    known = {name: value for name, value in data.items() if name in SETTINGS}
    for name in ("name", "owner"):  # earlier versions had no limit
        if isinstance(known.get(name), str):
            known[name] = known[name][: Label.LENGTH_MAX]
    newer_settings = {name: value for name, value in data.items() if name not in SETTINGS}
    forward_to = newer_settings.pop("forward_to", None)
    settings = read_settings(known, DEFAULT_SETTINGS, path)
    return replace(settings, newer_settings=newer_settings, forward_to=forward_to)


def check_scenario_settings(data: Mapping[str, Any]) -> None:
    """Refuse unknown settings in a scenario.

    Raises:
        Invalid: lists them, with paths below ``settings``.
    """
    read_settings(dict(data), DEFAULT_SETTINGS, "settings")


def read_settings(data: Any, base: Settings, path: str = "", form: SettingsForm | None = None) -> Settings:
    """Apply the settings of a request or a scenario to ``base``; ``form`` may have further fields.

    Raises:
        Invalid: lists every unknown or invalid setting (CTL-01); nothing changes.
    """
    if data == {}:
        return base
    try:
        return replace(base, **read(form or SETTINGS_FORM, data))
    except Invalid as invalid:
        raise Invalid(
            [
                violation._replace(path=".".join(filter(None, (path, violation.path))))
                for violation in invalid.violations
            ]
        ) from None
