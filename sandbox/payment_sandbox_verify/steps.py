"""The steps of a conversation, as data.

A step refers to earlier answers: ``<<order.id>>`` is the value at a path of the answer saved as ``order``,
``<<order@ETag>>`` is its header, and ``<<webhook>>`` is the address at which webhooks reach this machine.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

ORDERS_PATH: Final = "/v1/orders/"
CODES_PATH: Final = "/v1/bankqr/"
ORDER_PATH: Final = f"{ORDERS_PATH}<<order.id>>/"
WEBHOOK: Final = "<<webhook>>"
WEBHOOK_RULES: Final = "HOOK-02 HOOK-01 HOOK-04 HOOK-05 HOOK-06 HOOK-07 HOOK-08 AUTH-03 ORD-10"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationStep:
    """A step, with the ids of the rules that it shows, and a name for reports.

    The first rule names a difference that neither the sandbox's refusal nor the table of fields explains, and
    a difference in the status of an order.
    """

    rules: str = ""
    name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiCall(ConversationStep):
    """A call of the merchant API.

    ``about`` maps further paths to the rules that name their differences. ``key`` replaces the API key, and
    "" sends none. ``content`` is a body that is not JSON.
    """

    method: str
    path: str
    body: Any = None
    saves: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    about: Mapping[str, str] = field(default_factory=dict)
    key: str | None = None
    password: str = ""
    content: bytes | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Customer(ConversationStep):
    """What the customer does on the page of an order or a code: ``visit``, ``pay``, ``cancel`` or ``choose``.

    ``choice`` is the method that is chosen on a hosted page, or the card with which is paid.
    """

    order: str
    action: str
    choice: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pause(ConversationStep):
    """Wait until the service's clock has advanced."""

    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Webhooks(ConversationStep):
    """Wait for the webhooks of the scene's orders; ``seconds`` is how long retries are observed."""

    rules: str = "HOOK-02"
    seconds: float = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerWebhooks(ConversationStep):
    """Answer the next webhooks with these statuses; the last status answers all later webhooks."""

    statuses: tuple[int, ...]
    delay_seconds: float = 0.0


class ConversationScene(NamedTuple):
    """Steps that belong together; scenes do not depend on each other.

    ``is_costly`` marks scenes that create invoices or move money, ``is_patient`` those that take minutes.
    """

    name: str
    steps: tuple[ConversationStep, ...]
    is_costly: bool = False
    is_patient: bool = False
