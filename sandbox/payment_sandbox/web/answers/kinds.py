"""The enumerations and schemas of fields, imported on first use, and names for common types."""

from collections.abc import Iterable
from typing import Annotated, Any

from payment_sandbox.kernel.descriptions import Format
from payment_sandbox.loading import LOADING


def order_statuses() -> Iterable[str]:
    """Return the statuses of an order."""
    with LOADING:
        from payment_sandbox.orders.statuses import OrderStatus

    return [status.value for status in OrderStatus]


def delivery_states() -> Iterable[str]:
    """Return the states of a webhook."""
    with LOADING:
        from payment_sandbox.orders.webhooks import DeliveryState

    return [state.value for state in DeliveryState]


def parties() -> Iterable[str]:
    """Return the parties of a timeline."""
    with LOADING:
        from payment_sandbox.operations.history import PARTIES

    return PARTIES


def timeline_kinds() -> Iterable[str]:
    """Return the kinds of timeline entries."""
    with LOADING:
        from payment_sandbox.operations.history import KINDS

    return KINDS


def coverage_groups() -> Iterable[str]:
    """Return the groups of the coverage."""
    with LOADING:
        from payment_sandbox.operations.coverage import METHOD, REFUSAL, RULE, WEBHOOK

    return (METHOD, WEBHOOK, REFUSAL, RULE)


def order_shape() -> Any:
    """Return the order schema."""
    with LOADING:
        from payment_sandbox.web.answers.order import ORDER

    return ORDER.shape


def settings_form() -> Any:
    """Return the settings schema."""
    with LOADING:
        from payment_sandbox.projects.settings import SettingsForm

    return SettingsForm


Moment = Annotated[str, Format("date-time")]
"""An ISO 8601 time with microseconds and offset."""

Strings = dict[str, str]
Json = dict[str, Any]
