"""The calls of the control API, one method for each.

``make docs`` writes this file from the functions in ``web/control``.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Annotated, Any, Literal

from payment_sandbox.client.errors import ends_at_caller
from payment_sandbox.client.plain import control_call
from payment_sandbox.web.answers import records as answers

Json = dict[str, Any]
Document = Mapping[str, Any]

__tracebackhide__ = ends_at_caller


class ControlCommands:
    """One project of a running sandbox: each method is a call of the control API.

    Every method raises ``SandboxError`` if the server refuses the call.
    """

    def call(self, method: str, path: str, body: Any = None, query: Mapping[str, Any] | None = None) -> Any:
        """Make any call; return the parsed body."""
        raise NotImplementedError

    @control_call("GET", "/control/clock/")
    def read_clock(self) -> answers.Clock:
        """Get the clock."""

    @control_call("PATCH", "/control/clock/")
    def change_clock(
        self,
        *,
        mode: Annotated[Literal["running", "frozen"], "Whether the clock runs by itself or is frozen."]
        | None = None,
        rate: Annotated[float, "Sandbox seconds per real second, for a running clock."] | None = None,
        now: Annotated[datetime | str, "The new time; it can only move forward."] | None = None,
    ) -> answers.MovedClock:
        """Freeze the clock, run it at a rate, or move it forward (CTL-12)."""

    @control_call("POST", "/control/clock/advance/", timeout_seconds="timeout")
    def advance(
        self,
        *,
        by: Annotated[timedelta | str, "Advance by this duration."] | None = None,
        to: Annotated[datetime | str, "Advance to this time."] | None = None,
        until: Annotated[Literal["next", "idle"], "Advance to the next event, or until the agenda is empty."]
        | None = None,
        max_events: Annotated[int, "Stop after this many events; 10000 by default."] | None = None,
        timeout_seconds: Annotated[float | timedelta, "Stop after this many real seconds; 60 by default."]
        | None = None,
    ) -> answers.Advance:
        """Advance the clock, event by event (CTL-13)."""

    @control_call("GET", "/control/agenda/", "items")
    def agenda(self) -> list[answers.AgendaItem]:
        """List the scheduled events, including failed ones (CTL-17)."""

    @control_call("GET", "/control/orders/", "items")
    def orders(
        self,
        *,
        status: Annotated[str, "Only orders with this status."] | None = None,
        method: Annotated[str, "Only orders with an attempt by this payment method."] | None = None,
        text: Annotated[
            str, "Only orders with this text in an id, number, description, method, name or email address."
        ]
        | None = None,
        limit: Annotated[int, "Return at most this many of the newest items."] | None = None,
        before: Annotated[str, "Only items before this id; for the next page."] | None = None,
    ) -> list[answers.OrderRow]:
        """List orders, newest first."""

    @control_call("GET", "/control/orders/{}/")
    def overview(self, order_id: str) -> answers.OrderOverview:
        """Get one order with its possible actions, scheduled events, webhooks and refunds."""

    @control_call("GET", "/control/timeline/", "items")
    def timeline(
        self,
        order_id: Annotated[str, "Only entries about this order and its refunds."] | None = None,
        *,
        limit: Annotated[int, "Return at most this many of the newest items."] | None = None,
    ) -> list[Json]:
        """List the history of the project, causes before effects."""

    @control_call("GET", "/control/report/", "text")
    def report(
        self,
        order_id: Annotated[str, "Only this order and its refunds; all orders by default."] | None = None,
    ) -> str:
        """Get the timeline and the review findings as text, for the report of a failed test."""

    @control_call("GET", "/control/actions/", "items")
    def actions(
        self,
        order_id: Annotated[str, "Only actions on this order."] | None = None,
        *,
        limit: Annotated[int, "Return at most this many of the newest items."] | None = None,
        before: Annotated[str, "Only items before this id; for the next page."] | None = None,
    ) -> list[Json]:
        """List the actions by customers, banks, screenings and processors, newest last."""

    @control_call("GET", "/control/review/")
    def reviewed(self) -> answers.ReviewResult:
        """List the mistakes in the integration's requests and webhook responses."""

    @control_call("GET", "/control/cards/", "items")
    def cards(self) -> list[Json]:
        """List the stored cards, oldest first."""

    @control_call("GET", "/control/bankqr/", "items")
    def qr_requests(self) -> list[answers.QrRow]:
        """List the QR requests, oldest first."""

    @control_call("POST", "/control/orders/{}/act/")
    def act(
        self,
        order_id: str,
        actor: Annotated[Literal["customer", "bank", "screening", "processor"], "The acting party."],
        action: Annotated[
            Literal[
                "visit", "pay", "cancel", "fail", "choose", "credit", "approve", "decline", "error", "settle"
            ],
            "The action, by actor: customer: visit, pay, cancel, fail, choose; bank: credit; screening: approve, decline, error; processor: settle, fail.",
        ],
        *,
        payment_method: Annotated[str, "For choose: the payment method."] | None = None,
        issuer_id: Annotated[str, "For bank-redirect-nl: the bank."] | None = None,
        card: Annotated[str, "For a card payment: the test card."] | None = None,
        authorization: Annotated[str, "For wallet-google: the authorization method."] | None = None,
        amount: Annotated[
            int,
            "For the bank's credit action: cents; by default the missing amount, or the whole amount again.",
        ]
        | None = None,
        transaction_id: Annotated[
            str, "The transaction; by default the newest or, for the bank, the newest that can receive money."
        ]
        | None = None,
        reason: Annotated[str, "The reason for a failure or decline."] | None = None,
    ) -> Json:
        """Act on an order as the customer, the bank or another actor (CTL-20)."""

    @control_call("POST", "/control/bankqr/{}/scan/")
    def scan(
        self,
        qr_id: str,
        amount: Annotated[int, "The amount that the payer enters, in cents, if they may change it."]
        | None = None,
        issuer_id: Annotated[str, "The payer's bank."] | None = None,
    ) -> Json:
        """Scan a QR code as a payer."""

    @control_call("GET", "/control/scenario/")
    def active_scenario(self) -> Json:
        """Get the active scenario; each rule says how often it has matched."""

    @control_call("PUT", "/control/scenario/", is_document=True)
    def put_scenario(self, document: Document) -> Json:
        """Activate a scenario, by name or from the body (CTL-19)."""

    @control_call("DELETE", "/control/scenario/")
    def reset_scenario(self) -> Json:
        """Restore the default scenario."""

    @control_call("GET", "/control/scenarios/", "items")
    def scenarios(self) -> list[answers.ScenarioSummary]:
        """List the available scenarios (CTL-18)."""

    @control_call("GET", "/control/scenarios/{}/")
    def scenario_detail(self, name: str) -> answers.ScenarioDetail:
        """Get a scenario with its rules, and their uses if it is active."""

    @control_call("GET", "/control/scenarios/schema/")
    def scenario_schema(self) -> Json:
        """Get the JSON Schema of scenario files, for editors."""

    @control_call("GET", "/control/faults/")
    def active_faults(self) -> Json:
        """Get the faults in addition to the scenario's; each says how often it has matched."""

    @control_call("PUT", "/control/faults/", is_document=True)
    def put_faults(self, document: Document) -> Json:
        """Set faults for requests and webhooks, in addition to the scenario's (CTL-23, CTL-24)."""

    @control_call("DELETE", "/control/faults/")
    def reset_faults(self) -> Json:
        """Remove all faults except the scenario's."""

    @control_call("GET", "/control/webhooks/", "items")
    def webhooks(
        self,
        order_id: Annotated[str, "Only webhooks of this order."] | None = None,
        state: Annotated[
            str,
            "Only webhooks in this state; lost ones also count as delivered; only this lists unsent ones.",
        ]
        | None = None,
        *,
        limit: Annotated[int, "Return at most this many of the newest items."] | None = None,
        before: Annotated[str, "Only items before this id; for the next page."] | None = None,
        summary: Annotated[bool, "Omit headers and bodies."] | None = None,
    ) -> list[answers.Webhook]:
        """List webhooks with their delivery attempts (CTL-21)."""

    @control_call("GET", "/control/webhooks/{}/")
    def webhook(self, delivery_id: str) -> answers.Webhook:
        """Get one webhook with its delivery attempts."""

    @control_call("POST", "/control/webhooks/{}/redeliver/")
    def redeliver(
        self,
        delivery_id: str,
        *,
        url: Annotated[str, "Another address; the state of the webhook stays."] | None = None,
        body: Annotated[str, "Another body; the state of the webhook stays."] | None = None,
        after: Annotated[timedelta | str, "Resend after this period of sandbox time, such as PT10M."]
        | None = None,
    ) -> answers.Webhook:
        """Redeliver a webhook, now or later, unchanged or with another address or body (CTL-22)."""

    @control_call("POST", "/control/webhooks/deliver/", "items")
    def deliver_unsent(
        self, webhook_url: Annotated[str, "The address of the shop."]
    ) -> list[answers.Webhook]:
        """Deliver all webhooks that were not sent because no address was set."""

    @control_call("GET", "/control/journal/", "items")
    def journal(
        self,
        *,
        method: Annotated[str, "Only requests with this HTTP method."] | None = None,
        path: Annotated[str, "Only requests to this path; a trailing slash makes no difference."]
        | None = None,
        status: Annotated[int, "Only requests answered with this status."] | None = None,
        order_id: Annotated[str, "Only requests about this order."] | None = None,
        limit: Annotated[int, "Return at most this many of the newest items."] | None = None,
        before: Annotated[str, "Only items before this id; for the next page."] | None = None,
        summary: Annotated[bool, "Omit headers and bodies."] | None = None,
    ) -> list[answers.JournalEntry]:
        """List the requests to the merchant API (CTL-25)."""

    @control_call("GET", "/control/journal/{}/")
    def journal_entry(self, entry_id: str) -> answers.JournalEntry:
        """Get one request to the merchant API with its response."""

    @control_call("GET", "/control/fidelity/")
    def fidelity(self) -> answers.Fidelity:
        """List every rule with the tests that prove it, and every assumption (SET-70)."""

    @control_call("POST", "/control/projects/", is_document=True)
    def new_project(self, settings: Document) -> answers.ProjectWithKey:
        """Create a project; only this response contains its API key (CTL-06)."""

    @control_call("GET", "/control/projects/", "items")
    def projects(self) -> list[answers.Project]:
        """List the projects, without their API keys; ``damaged`` names those that cannot be read, if any."""

    @control_call("GET", "/control/projects/review/", "items")
    def all_findings(self) -> list[answers.ProjectFindings]:
        """List the mistakes in all projects; projects without findings are omitted."""

    @control_call("GET", "/control/project/")
    def project(self) -> answers.Project:
        """Get the project."""

    @control_call("PATCH", "/control/project/", is_document=True)
    def patch_project(self, settings: Document) -> answers.Project:
        """Change some settings (CTL-01, CTL-07)."""

    @control_call("DELETE", "/control/project/", "deleted")
    def delete_project(self) -> str:
        """Delete the project; its API key stops working. A damaged project can only be deleted."""

    @control_call("POST", "/control/reset/")
    def reset(self) -> answers.Project:
        """Reset the project to its initial state (CTL-09)."""

    @control_call("GET", "/control/state/")
    def snapshot(self) -> Json:
        """Take a snapshot of the whole project (CTL-10)."""

    @control_call("PUT", "/control/state/", is_document=True)
    def restore(self, state: Document) -> answers.Project:
        """Restore a snapshot of this or another project (CTL-10, CTL-11)."""

    @control_call("GET", "/control/wait/", timeout_seconds="timeout")
    def wait(
        self,
        *,
        order_id: Annotated[str, "The id of the order to wait for; requires status."] | None = None,
        status: Annotated[str, "The status to wait for."] | None = None,
        webhook: Annotated[str, "The id of an order; wait for an answer to one of its webhooks."]
        | None = None,
        idle: Annotated[bool, "Wait until nothing is due and no webhook is in flight."] | None = None,
        timeout_seconds: Annotated[
            float | timedelta, "The timeout, in real seconds; 10 by default, 60 at most."
        ]
        | None = None,
    ) -> answers.WaitResult:
        """Wait until all given conditions hold (CTL-26)."""

    @control_call("POST", "/control/listener/next/", timeout_seconds="timeout")
    def next_offers(
        self,
        *,
        timeout_seconds: Annotated[
            float | timedelta, "The time to wait for a webhook, in real seconds; 20 by default, 60 at most."
        ]
        | None = None,
        listener: Annotated[str, "A unique name of this listener; a newer listener replaces it."]
        | None = None,
        forward_to: Annotated[str, "The shop's URL, for which all webhooks wait from now on."] | None = None,
        leaves: Annotated[bool, "Whether the listener signs off: the server sends the webhooks again."]
        | None = None,
    ) -> answers.Offers:
        """Wait for the next webhooks to deliver, for listeners such as the command ``listen``.

        A later call ends this call; attempts without a reported answer are offered again.
        """

    @control_call("POST", "/control/listener/answers/", "recorded", attempt_id="id")
    def report_answer(
        self,
        attempt_id: Annotated[str, "The id of the attempt."],
        *,
        status: Annotated[int, "The status of the shop's response, if any."] | None = None,
        body: Annotated[str, "The first 4 KiB of the shop's response."] | None = None,
        error: Annotated[str, "The reason for a missing response."] | None = None,
        warning: Annotated[str, "A warning about an unusual response."] | None = None,
        duration_ms: Annotated[float, "The response time of the shop, in milliseconds."] | None = None,
    ) -> bool:
        """Report the shop's answer to an attempt, which counts as if the sandbox had received it.

        If the answer is not recorded, the same attempt is offered again; the listener then repeats the answer.
        """
