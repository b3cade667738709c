"""The enumerations and schemas of fields, imported on first use, and names for common types."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Any

from payment_sandbox.kernel.descriptions import Format
from payment_sandbox.loading import lazy
from payment_sandbox.orders.statuses import OrderStatus
from payment_sandbox.orders.webhooks import DeliveryState
from payment_sandbox.projects.settings import SettingsForm

if TYPE_CHECKING:
    from payment_sandbox.operations import coverage, history
    from payment_sandbox.web.answers import order_tables
else:
    coverage = lazy("payment_sandbox.operations.coverage")
    history = lazy("payment_sandbox.operations.history")
    order_tables = lazy("payment_sandbox.web.answers.order_tables")


def order_statuses() -> Iterable[str]:
    """Return the statuses of an order."""
    return [status.value for status in OrderStatus]


def delivery_states() -> Iterable[str]:
    """Return the states of a webhook."""
    return [state.value for state in DeliveryState]


def parties() -> Iterable[str]:
    """Return the parties of a timeline."""
    return history.PARTIES


def timeline_kinds() -> Iterable[str]:
    """Return the kinds of timeline entries."""
    return history.KINDS


def coverage_groups() -> Iterable[str]:
    """Return the groups of the coverage."""
    return (coverage.METHOD, coverage.WEBHOOK, coverage.REFUSAL, coverage.RULE)


def order_shape() -> Any:
    """Return the order schema."""
    return order_tables.ORDER.shape


def settings_form() -> Any:
    """Return the settings schema."""
    return SettingsForm


Moment = Annotated[str, Format("date-time")]
"""An ISO 8601 time with microseconds and offset."""

Strings = dict[str, str]
Json = dict[str, Any]
