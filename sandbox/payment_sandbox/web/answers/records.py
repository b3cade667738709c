"""The records of the control API, defined once for responses, OpenAPI and typed clients.

A string in ``Annotated`` describes a field. A function that serializes a record declares its type, so mypy
checks the keys; ``web.openapi`` describes the record in OpenAPI; the client returns it unchanged.
"""

from typing import Annotated, Any, Literal, NotRequired, TypedDict

from payment_sandbox.fidelity.ledger import Assumption as Assumption
from payment_sandbox.fidelity.ledger import Rule as Rule
from payment_sandbox.forms import Form
from payment_sandbox.judge import Finding
from payment_sandbox.kernel.descriptions import Like, Moment, OneOf
from payment_sandbox.operations.advance import WebhookInFlight as WebhookInFlight
from payment_sandbox.orders.refusals import Violation
from payment_sandbox.orders.statuses import OrderStatus
from payment_sandbox.orders.webhooks import DeliveryState
from payment_sandbox.projects.epoch import AgendaItem as AgendaItem
from payment_sandbox.projects.epoch import ProcessedEvent as ProcessedEvent
from payment_sandbox.projects.journal import CALLERS, LoggedFailure, ReachedStatus
from payment_sandbox.projects.settings import SettingsForm
from payment_sandbox.scenarios.model import Decision as Decision
from payment_sandbox.scenarios.model import Difference as Difference
from payment_sandbox.scenarios.model import NearestRule as NearestRule
from payment_sandbox.scenarios.model import TransactionDecision as TransactionDecision
from payment_sandbox.web.answers import order_tables

Strings = dict[str, str]
Json = dict[str, Any]
Order = Json
"""An order or a refund; the tables in ``web.answers.order_tables`` define its fields."""
Scenario = Json
"""A scenario as in a file; ``scenarios.scenario_forms`` defines the fields."""
Faults = Json
"""Faults in addition to the scenario's; ``scenarios.scenario_forms`` defines the fields."""
JsonSchema = Json
StoredCard = Json
TimelineRecord = Json
Snapshot = Json


class SnapshotShape(Form):
    """The whole state of a project; restore it unmodified."""


class JsonSchemaShape(Form):
    """A JSON Schema."""


class OpenApiShape(Form):
    """The OpenAPI description."""


class Clock(TypedDict):
    """A project's clock."""

    now: Moment
    mode: Annotated[str, OneOf(lambda: ("running", "frozen"))]
    rate: Annotated[float, "Sandbox seconds per real second."]


class StopDetails(TypedDict, total=False):
    """Details of an advance that hit a limit or ended with webhooks in flight; usually empty."""

    stopped: Annotated[Literal[True], "A limit stopped the advance; advance again to continue."]
    under_way: Annotated[list[WebhookInFlight], "The webhooks in flight, if any."]


class MovedClock(Clock, StopDetails):
    """A project's clock after a move, which may have been stopped early by a limit."""


class Project(TypedDict):
    """A project, without its API key."""

    project_id: str
    merchant_id: str
    settings: Annotated[Json, Like(lambda: SettingsForm)]
    clock: Clock
    scenario: Annotated[str, "The name of the active scenario."]


class ProjectWithKey(Project):
    """A new project with its API key, which is shown only once."""

    api_key: str


class DeletedProject(TypedDict):
    """A deleted project."""

    deleted: Annotated[str, "The project_id."]


class Offer(TypedDict):
    """A webhook attempt for a listener to make."""

    id: Annotated[str, "The id for reporting the answer; it survives a restart of the server."]
    webhook: Annotated[str, "The id of the webhook, common to all its attempts."]
    number: int
    at: Annotated[Moment, "Sandbox time."]
    by_hand: Annotated[bool, "Whether this is a manual resend."]
    order_id: str
    status: Annotated[str, "The status of the order that caused the webhook."]
    url: str
    headers: Strings
    body: str
    timeout_seconds: Annotated[float, "The time for the shop's answer."]


class Offers(TypedDict):
    """The webhook attempts for a listener to make now."""

    items: list[Offer]
    replaced: Annotated[bool, "Whether the listener must stop, because it has signed off or was replaced."]


class RecordingResult(TypedDict):
    """Whether a reported answer was recorded."""

    recorded: bool


class Report(TypedDict):
    """The history of a project or an order, for the report of a failed test."""

    text: Annotated[str, "The timeline, line by line, and the review findings."]


Begun = TypedDict("Begun", {"from": Moment})


class Advance(Begun, StopDetails):
    """The result of an advance."""

    to: Annotated[Moment, "The time of the clock after the advance."]
    events: list[ProcessedEvent]


class ScenarioSummary(TypedDict):
    """A scenario that can be chosen by name."""

    name: str
    description: str


class UsedRule(TypedDict):
    """A rule of a scenario, with the number of attempts decided since the scenario's activation."""

    rule: Annotated[int, "The index of the rule."]
    when: Json
    then: Json
    times: int | None
    uses: int


class ScenarioDetail(TypedDict):
    """A scenario with its rules and faults."""

    name: str
    description: str
    is_active: bool
    settings: Json
    rules: list[UsedRule]
    webhooks: list[Json]
    faults: list[Json]


class WaitResult(TypedDict, total=False):
    """The conditions that now hold."""

    status: Annotated[str, OneOf(lambda: OrderStatus)]
    webhook_answers: list[int]
    idle: bool


class Fidelity(TypedDict):
    """The fidelity ledger."""

    items: list[Rule]
    dropped: Annotated[int, "Always 0."]
    assumptions: list[Assumption]


class SentRequest(TypedDict):
    """The request of a webhook attempt."""

    url: Annotated[str, "The target: the webhook's URL, unless a manual resend overrode it."]
    headers: Strings
    body: str


class WebhookResponse(TypedDict):
    """The shop's response to a webhook attempt."""

    status: int
    body: NotRequired[Annotated[str, "The first 4 KiB; not in a summary."]]


class Attempt(TypedDict):
    """One attempt to deliver a webhook."""

    number: Annotated[int, "From 1; 0 for a manual resend with another URL or body."]
    at: Annotated[Moment, "Sandbox time."]
    real_at: Moment
    request: NotRequired[Annotated[SentRequest, "Not in a summary."]]
    response: WebhookResponse | None
    error: Annotated[str | None, "The reason for a missing response."]
    warning: str | None
    fault: Annotated[str | None, "The outcome set by a fault; null if the shop received the webhook."]
    traceback: NotRequired[
        Annotated[str | None, "The traceback of an exception in an in-process handler; not in a summary."]
    ]
    duration_ms: float


class Webhook(TypedDict):
    """A webhook with all its attempts."""

    id: str
    order_id: str
    url: Annotated[str, "Empty if no address was set."]
    state: Annotated[str, OneOf(lambda: DeliveryState)]
    lost: Annotated[
        bool, "Whether a fault withheld the webhook from the shop; such webhooks count as delivered."
    ]
    status: Annotated[str, "The reported order status."]
    attempts: list[Attempt]


class Headers(TypedDict):
    """The headers of a request and its response, without headers that contain keys."""

    request: Strings
    response: Strings


class JournalEntry(TypedDict):
    """A request to the merchant API, and its response; a summary omits bodies, headers and the decision."""

    id: str
    at: Annotated[Moment, "Sandbox time."]
    real_at: Moment | None
    method: str
    path: str
    query: str
    status: int | None
    request: NotRequired[Annotated[Any, "The body of the request."]]
    response: NotRequired[Annotated[Any, "The body of the response."]]
    headers: NotRequired[Headers]
    ignored: list[Annotated[str, "The path of an ignored key."]]
    rule: Annotated[str | None, "The rule that refused the request."]
    fault: Json | None
    decision: NotRequired[Decision | None]
    order_id: str | None
    caller: Annotated[str, OneOf(lambda: CALLERS), "Whether the shop or its test made the call."]
    resent_of: Annotated[
        str | None, "The id of the lost request that the HTTP client may have sent again by itself."
    ]


class Return(TypedDict):
    """A customer's return to the shop."""

    order_id: str
    at: Moment
    real_at: Moment


class Journal(TypedDict, total=False):
    """The requests, returns, statuses and failures of a project."""

    items: list[JournalEntry]
    dropped: Annotated[int, "The number of older entries dropped to make room."]
    returns: list[Return]
    statuses: list[ReachedStatus]
    failures: list[LoggedFailure]
    count: Annotated[int, "With ?count=1: the number of entries, instead of the list."]


class WebhookCounts(TypedDict):
    """The numbers of an order's webhooks by state, and of all attempts."""

    pending: int
    delivered: int
    lost: Annotated[int, "The number withheld from the shop by a fault."]
    failed: int
    attempts: int


class OrderRow(TypedDict):
    """A summary of an order, for lists."""

    id: str
    merchant_order_id: str | None
    description: str | None
    status: Annotated[str, OneOf(lambda: OrderStatus)]
    amount: Annotated[int, "Cents."]
    currency: str
    payment_method: Annotated[str | None, "The method of the newest attempt."]
    customer: Annotated[str | None, "The customer's email address."]
    created: Moment
    modified: Moment
    flags: list[str]
    webhooks: WebhookCounts
    service: Annotated[str, "What the service knows: the status, or the money that says more."]
    shop_status: Annotated[str | None, "The last status that the shop has read."]
    shop: Annotated[str, "What the shop believes, and why it does not know the status."]
    is_behind: Annotated[bool, "Whether the shop believes in another status."]


class MerchantAction(TypedDict):
    """An action currently available to the merchant."""

    action: Annotated[str, OneOf(lambda: ("capture", "void", "refund", "cancel"))]
    amount_max: Annotated[int | None, "Cents."]


class Actions(TypedDict):
    """The currently possible actions, by actor."""

    customer: list[str]
    bank: list[str]
    screening: list[str]
    processor: list[str]
    merchant: list[MerchantAction]


class RefundRow(OrderRow):
    """A refund of an order, with its possible actions."""

    actions: Actions


class OrderOverview(TypedDict):
    """An order with its actions, decisions, agenda, webhooks, refunds and pages."""

    order: Annotated[Order, Like(lambda: order_tables.ORDER.shape)]
    actions: Actions
    decisions: list[TransactionDecision]
    agenda: list[AgendaItem]
    webhooks: list[Webhook]
    refunds: list[RefundRow]
    pages: list[Annotated[str, "The URL of a payment page."]]


class QrRow(TypedDict):
    """A bank QR request."""

    id: str
    created: Moment
    expires_at: Moment
    amount: Annotated[int | None, "Cents."]
    amount_changeable: bool
    one_off: bool
    scans: int
    description: str | None
    merchant_order_id: str | None
    page: Annotated[str, "The URL that the code contains."]


class MistakeGroup(TypedDict):
    """The findings with the same rule and advice."""

    name: Annotated[str, "The rule, with a number if it has several groups."]
    problem: Annotated[str, "The first finding, in a sentence."]
    advice: Annotated[str, "The advice."]
    is_open: Annotated[bool, "Whether these are mistakes that were not corrected later."]
    orders: list[Annotated[str, "The id of an order."]]
    amount: Annotated[int, "Cents at risk in all orders; an order counts once."]
    risk: Annotated[str, "The cost of the mistake, with the amount; empty for hints."]
    last_seen: Annotated[Moment | None, "Sandbox time of the newest request or webhook with the mistake."]


class ReviewResult(TypedDict):
    """The findings of the review."""

    items: list[Finding]
    dropped: Annotated[int, "Always 0."]
    groups: Annotated[list[MistakeGroup], "The findings by mistake, open ones first, largest amounts first."]
    unmatched: Annotated[list[str], "The faults and rules of the test that never matched, in sentences."]
    text: Annotated[str, "The open mistakes and the unmatched rules, for the output of a test; may be empty."]


class ProjectFindings(TypedDict):
    """The findings of one project."""

    project_id: str
    name: str
    findings: list[Finding]


class StateVersion(TypedDict):
    """A number that grows with each change of the order and each attempt to deliver its webhooks."""

    state: int


class Health(TypedDict):
    """The health of the server."""

    status: Literal["ok"]
    version: str


class MethodCurrencies(TypedDict):
    """The currencies of a method."""

    currencies: list[str]


class Currencies(TypedDict):
    """The enabled methods and their currencies."""

    payment_methods: dict[str, MethodCurrencies]


class OwnProject(TypedDict):
    """The project of the API key, with the permitted calls by path and method."""

    id: str
    name: str
    status: Literal["active-testing", "active"]
    permissions: dict[str, dict[str, bool]]


class Error(TypedDict):
    """The details of an error."""

    status: int
    type: str
    value: Annotated[str, "A message that names the field or rule."]
    violations: list[Violation]
    allowed: NotRequired[list[Annotated[str, "An allowed value or action."]]]
    now: NotRequired[Annotated[Json, "The current state, after a wait that timed out."]]


class ErrorAnswer(TypedDict):
    """The body of every 4xx and 5xx response."""

    error: Error
