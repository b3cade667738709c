"""The steps of a conversation, as data.

A step refers to earlier answers: ``<<order.id>>`` is the value at a path of the answer saved as ``order``,
``<<order@ETag>>`` is its header, and ``<<webhook>>`` is the address at which webhooks reach this machine.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

ORDERS_PATH: Final = "/v1/orders/"
CODES_PATH: Final = "/v1/bankqr/"
ORDER_PATH: Final = f"{ORDERS_PATH}<<order.id>>/"
WEBHOOK: Final = "<<webhook>>"
WEBHOOK_RULES: Final = "HOOK-02 HOOK-01 HOOK-04 HOOK-05 HOOK-06 HOOK-07 HOOK-08 AUTH-03 ORD-10"
REFERENCE: Final = re.compile(r"<<(\w+)(?:([.@])([^>]*))?>>")
BODY_LENGTH_MAX: Final = 100  # characters of a body in a report


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationStep:
    """A step, with the ids of the rules that it shows, and a name for reports.

    The first rule names a difference that neither the sandbox's refusal nor the table of fields explains, and
    a difference in the status of an order.
    """

    rules: str = ""
    name: str = ""

    @property
    def shown(self) -> str:
        """The step in a report."""
        return self.name


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiCall(ConversationStep):
    """A call of the merchant API.

    ``about`` maps further paths to the rules that name their differences. ``auth`` is a key and a password:
    None is the merchant's key, "" no key. ``content`` is a body that is not JSON.
    """

    method: str
    path: str
    body: Any = None
    saves: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    about: Mapping[str, str] = field(default_factory=dict)
    auth: tuple[str | None, str] = (None, "")
    content: bytes | None = None

    @property
    def shown(self) -> str:
        """The name, the method and the path, and what is sent if there is no name."""
        request = f"{self.method} {REFERENCE.sub('{id}', self.path)}"
        if self.name:
            return f"{self.name}, {request}"
        body = self.content.decode("latin-1") if self.content is not None else json.dumps(self.body)
        sent = [f"{name}: {value}" for name, value in self.headers.items()]
        sent += [] if self.content is None and self.body is None else [body]
        return " ".join([request, *(f"{each:.{BODY_LENGTH_MAX}}" for each in sent if each)])


@dataclass(frozen=True, slots=True, kw_only=True)
class Customer(ConversationStep):
    """What the customer does on the page of an order or a code: visit, look, pay, fail, cancel or choose.

    ``choice`` is the method that is chosen on a hosted page, or the card with which is paid.
    """

    action: str
    choice: str = ""
    order: str = "order"

    @property
    def shown(self) -> str:
        """The action in a report."""
        return self.name or f"{self.action} {self.choice} on the payment page".replace("  ", " ")


@dataclass(frozen=True, slots=True, kw_only=True)
class Pause(ConversationStep):
    """Wait until the service's clock has advanced."""

    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Webhooks(ConversationStep):
    """Wait for the webhooks of the scene's orders; ``seconds`` is how long retries are observed."""

    rules: str = WEBHOOK_RULES
    seconds: float = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerWebhooks(ConversationStep):
    """Answer the next webhooks with these statuses; the last status answers all later webhooks."""

    statuses: tuple[int, ...]
    delay_seconds: float = 0.0


class ConversationScene(NamedTuple):
    """Steps that belong together; scenes do not depend on each other."""

    name: str
    steps: tuple[ConversationStep, ...]

    @property
    def is_patient(self) -> bool:
        """Whether the scene takes minutes."""
        return any(isinstance(step, Webhooks) and step.seconds for step in self.steps)


def call(request: str, rules: str, body: Any = None, **options: Any) -> ApiCall:
    """Return a call; ``request`` is its method and its path."""
    method, _, path = request.partition(" ")
    return ApiCall(method=method, path=path, rules=rules, body=body, **options)


def read(order: str, rules: str = "END-03", query: str = "", **options: Any) -> ApiCall:
    """Return a call that reads an order."""
    return call(f"GET {ORDERS_PATH}<<{order}.id>>/{query}", rules, saves=order, **options)
