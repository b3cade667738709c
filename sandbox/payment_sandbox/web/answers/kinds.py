"""What the types of records say about their fields besides Python's types: formats, values and shapes."""

from collections.abc import Callable, Iterable
from typing import Annotated, Any, NamedTuple

from payment_sandbox.loading import LOADING


class Format(NamedTuple):
    """The format of a text."""

    name: str


class OneOf(NamedTuple):
    """The values that a field can have; looked up when the API is described, because that loads a lot."""

    values: Callable[[], Iterable[str]]


class Like(NamedTuple):
    """A field whose shape has another definition, as that of a merchant's record."""

    shape: Callable[[], Any]


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


def actors() -> Iterable[str]:
    """Who can act."""
    with LOADING:
        from payment_sandbox.orders.actions import ACTIONS
        from payment_sandbox.projects.journal import MERCHANT

    return [*ACTIONS, MERCHANT]


def vias() -> Iterable[str]:
    """Through what somebody can act."""
    with LOADING:
        from payment_sandbox.projects.journal import VIAS

    return VIAS


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


def findings() -> Iterable[str]:
    """What a review can find."""
    with LOADING:
        from payment_sandbox.operations.review import KINDS

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
