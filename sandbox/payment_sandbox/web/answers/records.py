"""The records of the control API: one definition for what is answered, described, and typed in clients.

A text in ``Annotated`` describes a field. Who serializes a record returns its type, so mypy compares the
keys; ``shapes.shape_of`` describes it in OpenAPI; the client returns it as it comes.
"""

from typing import Annotated, Any, Literal, NotRequired, TypedDict

from payment_sandbox.fidelity.ledger import Assumption as Assumption
from payment_sandbox.fidelity.ledger import Rule as Rule
from payment_sandbox.kernel.descriptions import Like, OneOf
from payment_sandbox.scenarios.model import Difference as Difference
from payment_sandbox.web.answers.kinds import (
    Json,
    Moment,
    Strings,
    coverage_groups,
    delivery_states,
    happenings,
    order_shape,
    order_statuses,
    parties,
    settings_form,
)
from payment_sandbox.web.answers.merchant_records import Order as Order


class Health(TypedDict):
    """The server is ready, or it stops and wants no more clients."""

    status: Literal["ok", "draining"]
    version: str


class Pruned(TypedDict):
    """The projects that were deleted."""

    deleted: Annotated[list[str], "Their ids."]


class Server(TypedDict):
    """One of the servers of a sandbox."""

    url: Annotated[str, "Where the other servers reach it."]
    version: str
    status: Literal["ok", "draining"]
    projects: Annotated[int, "How many are in its memory."]


class Clock(TypedDict):
    """A project's clock."""

    now: Moment
    mode: Annotated[str, OneOf(lambda: ("running", "frozen"))]
    rate: Annotated[float, "Sandbox seconds per real second."]


class UnderWay(TypedDict):
    """A webhook without a response yet."""

    delivery_id: str
    order_id: str
    url: str


class Stopped(TypedDict, total=False):
    """Whether a limit stopped an advance, and the webhooks then unanswered; mostly empty."""

    stopped: Annotated[Literal[True], "By a limit; advance again."]
    under_way: Annotated[list[UnderWay], "If there are any."]


class MovedClock(Clock, Stopped):
    """A project's clock, and whether a limit stopped it early."""


class Project(TypedDict):
    """A project, without its API key."""

    project_id: str
    merchant_id: str
    settings: Annotated[Json, Like(settings_form)]
    clock: Clock
    scenario: Annotated[str, "The name of the active scenario."]


class NewProject(Project):
    """A new project with its API key, which no later response contains."""

    api_key: str


class Deleted(TypedDict):
    """A deleted project."""

    deleted: Annotated[str, "Its project_id."]


class Offer(TypedDict):
    """An attempt that a listener should make."""

    id: Annotated[str, "To report the answer with; the same attempt keeps it when the server restarts."]
    webhook: Annotated[str, "The same for all attempts of a webhook."]
    number: int
    at: Annotated[Moment, "Sandbox time."]
    by_hand: Annotated[bool, "Whether somebody asked for it once more."]
    order_id: str
    url: str
    headers: Strings
    body: str


class Offers(TypedDict):
    """The attempts that a listener should make now."""

    items: list[Offer]
    replaced: Annotated[bool, "Whether it has left, or another listener has taken over; stop then."]


class Recorded(TypedDict):
    """Whether an answer counts."""

    recorded: bool


class Report(TypedDict):
    """What happened, for the report of a failed test."""

    text: Annotated[str, "The timeline, line by line, and the findings of the review."]


class Due(TypedDict):
    """A scheduled event, or one that failed."""

    at: Moment
    kind: str
    order_id: str
    label: str
    failed: NotRequired[Annotated[str, "Why the event failed; it is not retried."]]


class Happened(Due):
    """An event that happened during an advance."""

    delivery_id: NotRequired[Annotated[str, "For webhooks: the delivery's id."]]


Advance = TypedDict(
    "Advance",
    {
        "from": Moment,
        "to": Annotated[Moment, "Where the clock is now."],
        "events": list[Happened],
        "stopped": NotRequired[Annotated[Literal[True], "By a limit; advance again."]],
        "under_way": NotRequired[Annotated[list[UnderWay], "If there are any."]],
    },
)
"""The result of an advance."""


class ScenarioSummary(TypedDict):
    """A scenario that can be chosen by name."""

    name: str
    description: str


class Scenario(TypedDict):
    """A whole scenario, as in a file."""

    name: str
    description: NotRequired[str]
    settings: NotRequired[Json]
    rules: NotRequired[list[Json]]
    webhooks: NotRequired[list[Json]]
    faults: NotRequired[list[Json]]


class Faults(TypedDict):
    """Faults in addition to the scenario's."""

    faults: list[Json]
    webhooks: list[Json]


class UsedRule(TypedDict):
    """A rule of a scenario, and how often it has decided an attempt since the scenario was activated."""

    rule: Annotated[int, "Its index."]
    when: Json
    then: Json
    times: int | None
    uses: int


class ScenarioDetail(Faults):
    """A scenario with its rules and faults."""

    name: str
    description: str
    is_active: bool
    settings: Json
    rules: list[UsedRule]


JsonSchema = TypedDict(
    "JsonSchema",
    {
        "$schema": str,
        "title": str,
        "description": NotRequired[str],
        "type": str,
        "properties": Json,
        "required": NotRequired[list[str]],
        "additionalProperties": NotRequired[bool],
        "$defs": Json,
    },
)
"""A JSON Schema."""


class Waited(TypedDict, total=False):
    """The conditions that now hold."""

    status: Annotated[str, OneOf(order_statuses)]
    webhook_answers: list[int]
    idle: bool


class Fidelity(TypedDict):
    """The fidelity ledger."""

    items: list[Rule]
    dropped: Annotated[int, "Always 0."]
    assumptions: list[Assumption]


class Snapshot(TypedDict):
    """A project's whole state; restore it unchanged."""

    format: str
    now: Moment
    clock_mode: Annotated[str, OneOf(lambda: ("running", "frozen"))]
    clock_rate: float
    settings: Json
    scenario: Json
    rule_uses: list[Any]
    scenario_faults: list[Json]
    faults: Json
    fault_uses: list[Json]
    seed: int
    id_series: int
    id_counts: dict[str, int]
    epoch: int
    sequence: int
    agenda: list[Json]
    orders: list[Json]
    credentials: list[Json]
    qr_requests: list[Json]
    deliveries: list[Json]
    deliveries_dropped: int
    swapped: list[str]
    decisions: Annotated[list[Json], "What scenarios decided for the attempts, or the nearest miss."]


class Sent(TypedDict):
    """What an attempt sent."""

    url: Annotated[str, "Where to; the webhook's own, unless it was sent again elsewhere."]
    headers: Strings
    body: str


class Answered(TypedDict):
    """The merchant's response."""

    status: int
    body: NotRequired[Annotated[str, "The first 4 KiB at most; not in a summary."]]


class Attempt(TypedDict):
    """One attempt to deliver a webhook."""

    number: Annotated[int, "From 1; 0 if somebody has sent it elsewhere, or with another body."]
    at: Annotated[Moment, "Sandbox time."]
    real_at: Moment
    request: NotRequired[Annotated[Sent, "Not in a summary."]]
    response: Answered | None
    error: Annotated[str | None, "Why there was no response."]
    warning: str | None
    fault: Annotated[str | None, "The outcome that a fault decided; null if the shop got the webhook."]
    traceback: NotRequired[
        Annotated[str | None, "Of an exception in a handler that runs in this process; not in a summary."]
    ]
    duration_ms: float


class Webhook(TypedDict):
    """A webhook with all its attempts."""

    id: str
    order_id: str
    url: str
    state: Annotated[str, OneOf(delivery_states)]
    lost: Annotated[bool, "It counts as delivered, but a fault withheld it from the shop."]
    status: Annotated[str, "The status of the order that it tells about."]
    attempts: list[Attempt]


class Nearest(TypedDict):
    """The rule that came closest to matching."""

    rule: int
    differs: list[Difference]


class Decision(TypedDict):
    """What a scenario decided for an attempt."""

    scenario: str
    rule: Annotated[int | None, "The matching rule's index."]
    nearest: NotRequired[Nearest | None]


class Decided(Decision):
    """What a scenario decided for one attempt of an order."""

    transaction_id: str


class Headers(TypedDict):
    """The headers of a request and of its response, without those that hold keys."""

    request: Strings
    response: Strings


class JournalEntry(TypedDict):
    """A request to the merchant API, and its response; a summary has no bodies, headers and decision."""

    id: str
    at: Annotated[Moment, "Sandbox time."]
    real_at: Moment | None
    method: str
    path: str
    query: str
    status: int | None
    request: NotRequired[Annotated[Any, "The body."]]
    response: NotRequired[Annotated[Any, "The body."]]
    headers: NotRequired[Headers]
    ignored: list[Annotated[str, "The path of an ignored key."]]
    rule: Annotated[str | None, "The rule that refused it."]
    fault: Json | None
    decision: NotRequired[Decision | None]
    order_id: str | None


class Return(TypedDict):
    """A customer's return to the shop."""

    order_id: str
    at: Moment
    real_at: Moment


class StatusReached(TypedDict):
    """A status that an order or one of its attempts has reached."""

    id: str
    transaction_id: str | None
    cause: Annotated[str | None, "The id of the request or action behind it."]
    order_id: str
    payment_method: Annotated[str | None, "The method, for an attempt."]
    status: str
    at: Moment
    real_at: Moment


class Failure(TypedDict):
    """A scheduled event that failed."""

    id: str
    order_id: str
    kind: str
    label: str
    error: str
    at: Moment
    real_at: Moment


class Journal(TypedDict, total=False):
    """What happened in a project."""

    items: list[JournalEntry]
    dropped: Annotated[int, "How many older entries were dropped to make room."]
    returns: list[Return]
    statuses: list[StatusReached]
    failures: list[Failure]
    count: Annotated[int, "With ?count=1: the number of entries, instead of the list."]


class WebhookCounts(TypedDict):
    """How the webhooks of an order stand."""

    pending: int
    delivered: int
    lost: Annotated[int, "Withheld from the shop by a fault."]
    failed: int
    attempts: int


class OrderRow(TypedDict):
    """The few facts of an order that a list shows."""

    id: str
    merchant_order_id: str | None
    description: str | None
    status: Annotated[str, OneOf(order_statuses)]
    amount: Annotated[int, "Cents."]
    currency: str
    payment_method: Annotated[str | None, "Of the newest attempt."]
    customer: Annotated[str | None, "Their e-mail address."]
    created: Moment
    modified: Moment
    flags: list[str]
    webhooks: WebhookCounts


class MerchantAction(TypedDict):
    """Something that the merchant could do now."""

    action: Annotated[str, OneOf(lambda: ("capture", "void", "refund", "cancel"))]
    amount_max: Annotated[int | None, "Cents."]


class Actions(TypedDict):
    """The actions that are possible now, by actor."""

    customer: list[str]
    bank: list[str]
    screening: list[str]
    processor: list[str]
    merchant: list[MerchantAction]


class RefundRow(OrderRow):
    """A refund of an order, with the actions possible on it."""

    actions: Actions


class OrderOverview(TypedDict):
    """Everything about one order."""

    order: Annotated[Order, Like(order_shape)]
    actions: Actions
    decisions: list[Decided]
    agenda: list[Due]
    webhooks: list[Webhook]
    refunds: list[RefundRow]
    pages: list[Annotated[str, "The address of a payment page."]]


Happening = TypedDict(
    "Happening",
    {
        "id": str,
        "at": Annotated[Moment, "Sandbox time."],
        "real_at": Moment,
        "from": Annotated[str, OneOf(parties)],
        "to": Annotated[str, OneOf(parties)],
        "kind": Annotated[str, OneOf(happenings)],
        "label": str,
        "status": Annotated[int | str | None, "An HTTP status, or the status of an order."],
        "cause": Annotated[str | None, "The id of an earlier entry."],
        "order_id": str | None,
        "failed": bool,
        "rule": Annotated[str | None, "The rule that refused a request."],
        "detail": str | None,
        "duration_ms": Annotated[int | None, "Until the shop answered; null if at once."],
        "lost": Annotated[bool, "A fault withheld it from its receiver."],
    },
)
"""One thing that happened: who told whom what."""


class StoredCard(TypedDict):
    """A stored card, without its number."""

    vault_token: str
    use: Literal["one-click", "recurring"]
    first_transaction_id: str
    amount: Annotated[int, "Cents of the first payment; a recurring series keeps this amount."]
    stored_at: Moment
    brand: str
    card: Json


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
    page: Annotated[str, "The address that the code contains."]


class CoverageCell(TypedDict):
    """One thing that can happen, and where it did."""

    what: Annotated[str, "Such as paid, retried, CAP-08, or rule 1 of a scenario."]
    met_by: Annotated[list[str], "Ids of orders, or of refused requests; the first hundred."]
    count: Annotated[int, "How many there are; 0 if the shop has never met it without a mistake."]
    wrong: Annotated[list[str], "Those about which the review has an open finding; the first hundred."]
    by_hand: Annotated[list[str], "Those that somebody played by hand; the first hundred."]


class CoverageRow(TypedDict):
    """What can happen with a payment method, to webhooks, in refusals, or by scenario rules."""

    group: Annotated[str, OneOf(coverage_groups)]
    name: Annotated[str, "The payment method, or the name of the group."]
    cells: list[CoverageCell]


class Coverage(TypedDict):
    """What of all that can happen a project has met."""

    items: list[CoverageRow]
    dropped: Annotated[int, "Always 0."]
    percent: Annotated[float, "How much of the ends of the methods was met."]
    is_chosen: Annotated[bool, "Whether payment_methods is set; if not, the methods are those used."]


class OpenApi(TypedDict):
    """The OpenAPI description."""

    openapi: str
    info: Json
    paths: Json
    components: Json
    servers: list[Json]


class StateVersion(TypedDict):
    """The order's version; it grows with every change."""

    state: int
