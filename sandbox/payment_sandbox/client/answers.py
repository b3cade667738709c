"""Types of the responses that the client returns, with the keys of the API."""

from typing import Any, NotRequired, TypedDict


class Health(TypedDict):
    """The health of a server that is ready."""

    status: str
    version: str


class Clock(TypedDict):
    """A project's clock; ``now`` is ISO 8601."""

    now: str
    mode: str
    rate: float


class Project(TypedDict):
    """A project, without its key."""

    project_id: str
    merchant_id: str
    settings: dict[str, Any]
    clock: Clock
    scenario: str


class Due(TypedDict):
    """An agenda entry, or an event of an advance; ``failed`` says why it was set aside."""

    at: str
    kind: str
    order_id: str
    label: str
    failed: NotRequired[str]
    delivery_id: NotRequired[str]


class ScenarioSummary(TypedDict):
    """A scenario in the catalogue."""

    name: str
    description: str


class Scenario(TypedDict):
    """A whole scenario."""

    name: str
    description: NotRequired[str]
    settings: NotRequired[dict[str, Any]]
    rules: NotRequired[list[dict[str, Any]]]
    webhooks: NotRequired[list[dict[str, Any]]]
    faults: NotRequired[list[dict[str, Any]]]


class Faults(TypedDict):
    """Faults in addition to the scenario's."""

    faults: list[dict[str, Any]]
    webhooks: list[dict[str, Any]]


class Transaction(TypedDict):
    """One attempt to pay; amounts are cents."""

    id: str
    order_id: str
    status: str
    payment_method: str
    payment_method_brand: str
    payment_method_details: dict[str, Any]
    payment_url: NotRequired[str]
    amount: int
    currency: str
    balance: str
    credit_debit: str
    capture_mode: NotRequired[str]
    expiration_period: str
    is_capturable: bool
    is_fully_captured: bool
    reason: NotRequired[str]
    customer_message: NotRequired[str]
    events: list[dict[str, Any]]
    created: str
    modified: str
    completed: NotRequired[str]


class Order(TypedDict):
    """An order or a refund; amounts are cents."""

    id: str
    merchant_id: str
    project_id: str
    status: str
    currency: str
    amount: int
    description: NotRequired[str]
    merchant_order_id: NotRequired[str]
    return_url: NotRequired[str]
    webhook_url: NotRequired[str]
    expiration_period: NotRequired[str]
    payment_methods: NotRequired[list[str]]
    customer: NotRequired[dict[str, Any]]
    order_lines: NotRequired[list[dict[str, Any]]]
    transactions: list[Transaction]
    client: dict[str, Any]
    extra: NotRequired[dict[str, Any]]
    flags: list[str]
    reason: NotRequired[str]
    order_url: NotRequired[str]
    refund_of_order_id: NotRequired[str]
    created: str
    modified: str
    completed: NotRequired[str]
    last_transaction_added: NotRequired[str]


class Answered(TypedDict):
    """The shop's response to a webhook."""

    status: int
    body: str


class Attempt(TypedDict):
    """One attempt to deliver a webhook; ``at`` is sandbox time."""

    number: int
    at: str
    real_at: str
    request: dict[str, Any]
    response: Answered | None
    error: str | None
    warning: str | None
    traceback: NotRequired[str | None]
    duration_ms: float


class Webhook(TypedDict):
    """A webhook with every attempt."""

    id: str
    order_id: str
    url: str
    state: str
    status: str
    attempts: list[Attempt]


class Difference(TypedDict):
    """A condition of a rule that an attempt does not meet."""

    condition: str
    expected: Any
    actual: Any


class Nearest(TypedDict):
    """The rule that came closest to matching."""

    rule: int
    differs: list[Difference]


class Decision(TypedDict):
    """What a scenario decided for an attempt; ``rule`` is the index of the deciding rule."""

    scenario: str
    rule: int | None
    nearest: NotRequired[Nearest | None]


class JournalEntry(TypedDict):
    """A request to the merchant API and its response."""

    id: str
    at: str
    real_at: str
    method: str
    path: str
    query: str
    status: int | None
    request: Any
    response: Any
    ignored: list[str]
    rule: str | None
    fault: dict[str, Any] | None
    decision: Decision | None
    order_id: str | None


class Return(TypedDict):
    """A customer's return to the shop."""

    order_id: str
    at: str
    real_at: str


class StatusReached(TypedDict):
    """A status that an order has reached or, if ``payment_method`` is set, one of its attempts."""

    order_id: str
    payment_method: str | None
    status: str
    at: str
    real_at: str


class Failure(TypedDict):
    """An event that failed when it was due."""

    order_id: str
    kind: str
    label: str
    error: str
    at: str
    real_at: str


class Journal(TypedDict):
    """What happened in a project."""

    items: list[JournalEntry]
    dropped: int
    returns: list[Return]
    statuses: list[StatusReached]
    failures: list[Failure]


Happening = TypedDict(
    "Happening",
    {
        "id": str,
        "at": str,
        "real_at": str,
        "from": str,
        "to": str,
        "kind": str,
        "label": str,
        "status": int | str | None,
        "cause": str | None,
        "order_id": str | None,
        "failed": bool,
        "rule": str | None,
        "detail": str | None,
    },
)
"""One thing that happened: who told whom what."""


class Waited(TypedDict, total=False):
    """The values for which a wait ended."""

    status: str
    webhook_answers: list[int]
    idle: bool


class Rule(TypedDict):
    """A rule of the fidelity ledger."""

    id: str
    section: str
    source: str
    shown_by: str
    text: str
    tests: list[str]


class Assumption(TypedDict):
    """What the sandbox does where the specification is silent, and why."""

    id: str
    source: str
    text: str
    reason: str


class WebhookCounts(TypedDict):
    """How the webhooks of an order stand."""

    pending: int
    delivered: int
    failed: int
    attempts: int


class OrderRow(TypedDict):
    """The few facts of an order in a list."""

    id: str
    merchant_order_id: str | None
    description: str | None
    status: str
    amount: int
    currency: str
    payment_method: str | None
    customer: str | None
    created: str
    modified: str
    flags: list[str]
    webhooks: WebhookCounts


class OrderOverview(TypedDict):
    """Everything about one order; ``actions`` are those that are possible now, by actor."""

    order: Order
    actions: dict[str, Any]
    decisions: list[Decision]
    agenda: list[Due]
    webhooks: list[Webhook]
    refunds: list[OrderRow]
    pages: list[str]
