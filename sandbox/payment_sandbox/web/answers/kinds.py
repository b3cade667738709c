"""The values and shapes of fields that have another definition, and names for common types."""

from collections.abc import Iterable
from typing import Annotated, Any

from payment_sandbox.kernel.descriptions import Format
from payment_sandbox.loading import LOADING


def order_statuses() -> Iterable[str]:
    """The statuses of an order."""
    with LOADING:
        from payment_sandbox.orders.statuses import OrderStatus

    return [status.value for status in OrderStatus]


def delivery_states() -> Iterable[str]:
    """The states of a webhook."""
    with LOADING:
        from payment_sandbox.orders.webhooks import DeliveryState

    return [state.value for state in DeliveryState]


def parties() -> Iterable[str]:
    """Who tells and who is told."""
    with LOADING:
        from payment_sandbox.operations.history import PARTIES

    return PARTIES


def happenings() -> Iterable[str]:
    """What can happen."""
    with LOADING:
        from payment_sandbox.operations.history import KINDS

    return KINDS


def coverage_groups() -> Iterable[str]:
    """The groups of the coverage."""
    with LOADING:
        from payment_sandbox.operations.coverage import METHOD, REFUSAL, RULE, WEBHOOK

    return (METHOD, WEBHOOK, REFUSAL, RULE)


def order_shape() -> Any:
    """That of an order."""
    with LOADING:
        from payment_sandbox.web.answers.order import ORDER

    return ORDER.shape


def settings_form() -> Any:
    """That of the settings of a project."""
    with LOADING:
        from payment_sandbox.projects.settings import SettingsForm

    return SettingsForm


Moment = Annotated[str, Format("date-time")]
"""An ISO 8601 time with microseconds and offset."""

Strings = dict[str, str]
Json = dict[str, Any]
