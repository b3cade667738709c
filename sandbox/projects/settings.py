"""The settings of a project, and the form in which they come."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, Final

from marshmallow import ValidationError, validates_schema

from sandbox.forms import Choice, Flag, Form, Items, Text, WebUrl, Whole, read
from sandbox.forms.fields import Anything
from sandbox.methods import NAMES
from sandbox.orders.refusals import Invalid

LIVE: Final = "live"
TEST: Final = "test"
FEATURES: Final = ("cards_approved", "one_click_enabled", "recurring_enabled", "dynamic_descriptor_enabled")
CLOCK_PATTERN: Final = r"running|frozen|frozen@.+"


class SettingsForm(Form):
    """The settings of a project."""

    name = Text()
    mode = Choice((TEST, LIVE))
    webhook_url = WebUrl(allow_none=True)
    payment_methods = Items(Choice(NAMES))
    cards_approved = Flag()
    one_click_enabled = Flag()
    recurring_enabled = Flag()
    dynamic_descriptor_enabled = Flag()
    aliases = Anything(
        keys=Text(pattern="[A-Za-z0-9_-]{1,64}", expected="letters, digits, - and _"), values=Choice(NAMES)
    )
    absolute_urls = Flag()
    reduced_customer = Flag()
    authorized_status = Choice(("completed", "accepted"))
    unknown_fields = Choice(("drop", "reject"))
    webhook_timing = Choice(("after_response", "before_response"))
    seed = Whole(low=0, high=2**63 - 1)

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
    try:
        return base.changed(read(FORM, data))
    except Invalid as invalid:
        raise Invalid(
            [found._replace(path=".".join(filter(None, (path, found.path)))) for found in invalid.violations]
        ) from None
