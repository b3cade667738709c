"""The settings of a project, and the form in which they come."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, Final

from marshmallow import ValidationError, validates_schema

from payment_sandbox.forms import Choice, Flag, Form, Items, Text, WebUrl, Whole, read
from payment_sandbox.forms.fields import Anything
from payment_sandbox.methods import NAMES
from payment_sandbox.orders.refusals import Invalid

LIVE: Final = "live"
TEST: Final = "test"
FEATURES: Final = ("cards_approved", "one_click_enabled", "recurring_enabled", "dynamic_descriptor_enabled")
CLOCK_PATTERN: Final = r"running|frozen|frozen@.+"


class SettingsForm(Form):
    """The settings of a project."""

    name = Text(about="What the payment pages call the merchant.")
    mode = Choice((TEST, LIVE), about="With live, every method plays out; test has the limits of test mode.")
    webhook_url = WebUrl(
        allow_none=True, about="Where webhooks go, unless an order names its own address; null is nowhere."
    )
    payment_methods = Items(Choice(NAMES), about="The methods that are enabled; all of them by default.")
    cards_approved = Flag(about="Whether the merchant may take credit-card payments, stored cards or not.")
    one_click_enabled = Flag(about="Whether cards can be kept for one-click payments.")
    recurring_enabled = Flag(about="Whether cards can be kept for a recurring series.")
    dynamic_descriptor_enabled = Flag(about="Whether dynamic_descriptor is taken with card payments.")
    aliases = Anything(
        keys=Text(pattern="[A-Za-z0-9_-]{1,64}", expected="letters, digits, - and _"),
        values=Choice(NAMES),
        about="The merchant's own names for methods, each with the method that it stands for.",
    )
    absolute_urls = Flag(about="Whether order_url and payment_url begin with their scheme.")
    reduced_customer = Flag(about="Whether answers show country and ip_address of a customer only.")
    authorized_status = Choice(
        ("completed", "accepted"), about="The status of an authorized order that is not captured in full."
    )
    unknown_fields = Choice(
        ("drop", "reject"), about="What happens to request keys that the service does not know."
    )
    webhook_timing = Choice(
        ("after_response", "before_response"),
        about="When a webhook leaves: once the response is on its way, or before it.",
    )
    seed = Whole(
        low=0,
        high=2**63 - 1,
        about="The same seed and the same requests give the same identifiers; 0 stands for the server's.",
    )

    @validates_schema(skip_on_field_errors=False)
    def aliases_are_new_names(self, data: Mapping[str, Any], **options: Any) -> None:
        """An alias must not hide a method."""
        taken = {alias: ["is the name of a method"] for alias in data.get("aliases", {}) if alias in NAMES}
        if taken:
            raise ValidationError({"aliases": taken})


@dataclass(frozen=True)
class Settings:
    """What a merchant's account is allowed, and how answers look."""

    name: str = ""
    mode: str = TEST
    webhook_url: str | None = None
    payment_methods: tuple[str, ...] = NAMES
    cards_approved: bool = True
    one_click_enabled: bool = True
    recurring_enabled: bool = True
    dynamic_descriptor_enabled: bool = True
    aliases: Mapping[str, str] = field(default_factory=dict)
    absolute_urls: bool = False
    reduced_customer: bool = False
    authorized_status: str = "completed"
    unknown_fields: str = "drop"
    webhook_timing: str = "after_response"
    seed: int = 0

    @property
    def is_test(self) -> bool:
        """Whether payments are test payments."""
        return self.mode == TEST

    @cached_property
    def features(self) -> frozenset[str]:
        """The features that are on."""
        return frozenset(name for name in FEATURES if getattr(self, name))

    @cached_property
    def method_names(self) -> tuple[str, ...]:
        """Every name under which a request may call a method, aliases included."""
        return (*NAMES, *self.aliases)

    @cached_property
    def presentation(self) -> str:
        """Marks how answers look, so that an ETag changes when they do."""
        return f"{'a' if self.absolute_urls else ''}{'r' if self.reduced_customer else ''}"

    def method(self, name: str) -> str | None:
        """The identifier behind a name or alias; None when there is none."""
        return name if name in NAMES else self.aliases.get(name)

    def changed(self, values: Mapping[str, Any]) -> "Settings":
        """These settings with some values replaced."""
        if "payment_methods" in values:
            values = {**values, "payment_methods": tuple(values["payment_methods"])}
        return replace(self, **values)

    def as_mapping(self) -> dict[str, Any]:
        """All settings as plain data."""
        shown = {item.name: getattr(self, item.name) for item in fields(self)}
        return {**shown, "payment_methods": list(self.payment_methods), "aliases": dict(self.aliases)}


FORM: Final = SettingsForm()


def check_scenario_settings(data: Mapping[str, Any]) -> None:
    """Refuse what a scenario sets and no project has.

    Raises:
        Invalid: lists it, below ``settings``.
    """
    read_settings(dict(data), Settings(), "settings")


def read_settings(data: Any, base: Settings, path: str = "") -> Settings:
    """Change ``base`` by what a request or a scenario says.

    Raises:
        Invalid: lists every unknown or ill-typed setting (CTL-01); nothing changes.
    """
    if data == {}:
        return base
    try:
        return base.changed(read(FORM, data))
    except Invalid as invalid:
        raise Invalid(
            [found._replace(path=".".join(filter(None, (path, found.path)))) for found in invalid.violations]
        ) from None
