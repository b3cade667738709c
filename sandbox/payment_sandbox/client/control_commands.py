"""The calls of the control API, one method for each.

``make docs`` writes this file from the functions in ``web/control``.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Annotated, Any, Literal

from payment_sandbox.client.errors import ends_at_caller
from payment_sandbox.client.plain import path_of, to_seconds, without_none
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

    def read_clock(self) -> answers.Clock:
        """Get the clock."""
        answer: answers.Clock = self.call("GET", "/control/clock/")
        return answer

    def change_clock(
        self,
        *,
        mode: Annotated[Literal["running", "frozen"], "Whether the clock runs by itself or is frozen."]
        | None = None,
        rate: Annotated[float, "Sandbox seconds per real second, for a running clock."] | None = None,
        now: Annotated[datetime | str, "The new time; it can only move forward."] | None = None,
    ) -> answers.MovedClock:
        """Freeze the clock, run it at a rate, or move it forward (CTL-12)."""
        answer: answers.MovedClock = self.call(
            "PATCH", "/control/clock/", body=without_none(mode=mode, rate=rate, now=now)
        )
        return answer

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
        answer: answers.Advance = self.call(
            "POST",
            "/control/clock/advance/",
            body=without_none(
                by=by,
                to=to,
                until=until,
                max_events=max_events,
                timeout=None if timeout_seconds is None else to_seconds(timeout_seconds),
            ),
        )
        return answer

    def agenda(self) -> list[answers.AgendaItem]:
        """List the scheduled events, including failed ones (CTL-17)."""
        answer: list[answers.AgendaItem] = self.call("GET", "/control/agenda/")["items"]
        return answer

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
        answer: list[answers.OrderRow] = self.call(
            "GET",
            "/control/orders/",
            query=without_none(status=status, method=method, text=text, limit=limit, before=before),
        )["items"]
        return answer

    def overview(self, order_id: str) -> answers.OrderOverview:
        """Get one order with its possible actions, scheduled events, webhooks and refunds."""
        answer: answers.OrderOverview = self.call("GET", path_of("/control/orders/{}/", order_id))
        return answer

    def order_review(self, order_id: str) -> Json:
        """Review one order, and write a test of it, which fails while the shop makes the order's mistakes."""
        answer: Json = self.call("GET", path_of("/control/orders/{}/review/", order_id))
        return answer

    def timeline(
        self,
        order_id: Annotated[str, "Only entries about this order and its refunds."] | None = None,
        *,
        limit: Annotated[int, "Return at most this many of the newest items."] | None = None,
    ) -> list[answers.TimelineRecord]:
        """List the history of the project, causes before effects."""
        answer: list[answers.TimelineRecord] = self.call(
            "GET", "/control/timeline/", query=without_none(order_id=order_id, limit=limit)
        )["items"]
        return answer

    def report(
        self,
        order_id: Annotated[str, "Only this order and its refunds; all orders by default."] | None = None,
    ) -> str:
        """Get the timeline and the review findings as text, for the report of a failed test."""
        answer: str = self.call("GET", "/control/report/", query=without_none(order_id=order_id))["text"]
        return answer

    def actions(
        self,
        order_id: Annotated[str, "Only actions on this order."] | None = None,
        *,
        limit: Annotated[int, "Return at most this many of the newest items."] | None = None,
        before: Annotated[str, "Only items before this id; for the next page."] | None = None,
    ) -> list[Json]:
        """List the actions by customers, banks, screenings and processors, newest last."""
        answer: list[Json] = self.call(
            "GET", "/control/actions/", query=without_none(order_id=order_id, limit=limit, before=before)
        )["items"]
        return answer

    def reviewed(self) -> answers.ReviewResult:
        """List the mistakes in the integration's requests and webhook responses."""
        answer: answers.ReviewResult = self.call("GET", "/control/review/")
        return answer

    def coverage(self) -> answers.Coverage:
        """Get the coverage: the cases handled by the shop without a mistake, out of all possible cases."""
        answer: answers.Coverage = self.call("GET", "/control/coverage/")
        return answer

    def cards(self) -> list[answers.StoredCard]:
        """List the stored cards, oldest first."""
        answer: list[answers.StoredCard] = self.call("GET", "/control/cards/")["items"]
        return answer

    def qr_requests(self) -> list[answers.QrRow]:
        """List the QR requests, oldest first."""
        answer: list[answers.QrRow] = self.call("GET", "/control/bankqr/")["items"]
        return answer

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
        answer: Json = self.call(
            "POST",
            path_of("/control/orders/{}/act/", order_id),
            body=without_none(
                actor=actor,
                action=action,
                payment_method=payment_method,
                issuer_id=issuer_id,
                card=card,
                authorization=authorization,
                amount=amount,
                transaction_id=transaction_id,
                reason=reason,
            ),
        )
        return answer

    def scan(
        self,
        qr_id: str,
        amount: Annotated[int, "The amount that the payer enters, in cents, if they may change it."]
        | None = None,
        issuer_id: Annotated[str, "The payer's bank."] | None = None,
    ) -> Json:
        """Scan a QR code as a payer."""
        answer: Json = self.call(
            "POST",
            path_of("/control/bankqr/{}/scan/", qr_id),
            body=without_none(amount=amount, issuer_id=issuer_id),
        )
        return answer

    def active_scenario(self) -> answers.Scenario:
        """Get the active scenario; each rule says how often it has matched."""
        answer: answers.Scenario = self.call("GET", "/control/scenario/")
        return answer

    def put_scenario(self, document: Document) -> answers.Scenario:
        """Activate a scenario, by name or from the body (CTL-19)."""
        answer: answers.Scenario = self.call("PUT", "/control/scenario/", body=document)
        return answer

    def reset_scenario(self) -> answers.Scenario:
        """Restore the default scenario."""
        answer: answers.Scenario = self.call("DELETE", "/control/scenario/")
        return answer

    def scenarios(self) -> list[answers.ScenarioSummary]:
        """List the available scenarios (CTL-18)."""
        answer: list[answers.ScenarioSummary] = self.call("GET", "/control/scenarios/")["items"]
        return answer

    def scenario_detail(self, name: str) -> answers.ScenarioDetail:
        """Get a scenario with its rules, and their uses if it is active."""
        answer: answers.ScenarioDetail = self.call("GET", path_of("/control/scenarios/{}/", name))
        return answer

    def scenario_schema(self) -> answers.JsonSchema:
        """Get the JSON Schema of scenario files, for editors."""
        answer: answers.JsonSchema = self.call("GET", "/control/scenarios/schema/")
        return answer

    def active_faults(self) -> answers.Faults:
        """Get the faults in addition to the scenario's; each says how often it has matched."""
        answer: answers.Faults = self.call("GET", "/control/faults/")
        return answer

    def put_faults(self, document: Document) -> answers.Faults:
        """Set faults for requests and webhooks, in addition to the scenario's (CTL-23, CTL-24)."""
        answer: answers.Faults = self.call("PUT", "/control/faults/", body=document)
        return answer

    def reset_faults(self) -> answers.Faults:
        """Remove all faults except the scenario's."""
        answer: answers.Faults = self.call("DELETE", "/control/faults/")
        return answer

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
        answer: list[answers.Webhook] = self.call(
            "GET",
            "/control/webhooks/",
            query=without_none(order_id=order_id, state=state, limit=limit, before=before, summary=summary),
        )["items"]
        return answer

    def webhook(self, delivery_id: str) -> answers.Webhook:
        """Get one webhook with its delivery attempts."""
        answer: answers.Webhook = self.call("GET", path_of("/control/webhooks/{}/", delivery_id))
        return answer

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
        answer: answers.Webhook = self.call(
            "POST",
            path_of("/control/webhooks/{}/redeliver/", delivery_id),
            body=without_none(url=url, body=body, after=after),
        )
        return answer

    def deliver_unsent(
        self, webhook_url: Annotated[str, "The address of the shop."]
    ) -> list[answers.Webhook]:
        """Deliver all webhooks that were not sent because no address was set."""
        answer: list[answers.Webhook] = self.call(
            "POST", "/control/webhooks/deliver/", body=without_none(webhook_url=webhook_url)
        )["items"]
        return answer

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
        answer: list[answers.JournalEntry] = self.call(
            "GET",
            "/control/journal/",
            query=without_none(
                method=method,
                path=path,
                status=status,
                order_id=order_id,
                limit=limit,
                before=before,
                summary=summary,
            ),
        )["items"]
        return answer

    def journal_entry(self, entry_id: str) -> answers.JournalEntry:
        """Get one request to the merchant API with its response."""
        answer: answers.JournalEntry = self.call("GET", path_of("/control/journal/{}/", entry_id))
        return answer

    def fidelity(self) -> answers.Fidelity:
        """List every rule with the tests that prove it, and every assumption (SET-70)."""
        answer: answers.Fidelity = self.call("GET", "/control/fidelity/")
        return answer

    def new_project(self, settings: Document) -> answers.ProjectWithKey:
        """Create a project; only this response contains its API key (CTL-06)."""
        answer: answers.ProjectWithKey = self.call("POST", "/control/projects/", body=settings)
        return answer

    def projects(self) -> list[answers.ListedProject]:
        """List the projects, without their API keys."""
        answer: list[answers.ListedProject] = self.call("GET", "/control/projects/")["items"]
        return answer

    def all_findings(self) -> list[answers.ProjectFindings]:
        """List the mistakes in all projects; projects without findings are omitted."""
        answer: list[answers.ProjectFindings] = self.call("GET", "/control/projects/review/")["items"]
        return answer

    def prune_projects(
        self, unused_for: Annotated[timedelta | str, "Projects idle for this long in real time, such as P7D."]
    ) -> list[str]:
        """Delete the projects idle for a given time, except the default project."""
        answer: list[str] = self.call(
            "POST", "/control/projects/prune/", body=without_none(unused_for=unused_for)
        )["deleted"]
        return answer

    def servers(self) -> list[answers.Server]:
        """List the servers of the cluster; a single server lists itself."""
        answer: list[answers.Server] = self.call("GET", "/control/servers/")["items"]
        return answer

    def project(self) -> answers.Project:
        """Get the project."""
        answer: answers.Project = self.call("GET", "/control/project/")
        return answer

    def patch_project(self, settings: Document) -> answers.Project:
        """Change some settings (CTL-01, CTL-07)."""
        answer: answers.Project = self.call("PATCH", "/control/project/", body=settings)
        return answer

    def delete_project(self) -> str:
        """Delete the project; its API key stops working."""
        answer: str = self.call("DELETE", "/control/project/")["deleted"]
        return answer

    def reset(self) -> answers.Project:
        """Reset the project to its initial state (CTL-09)."""
        answer: answers.Project = self.call("POST", "/control/reset/")
        return answer

    def snapshot(self) -> answers.Snapshot:
        """Take a snapshot of the whole project (CTL-10)."""
        answer: answers.Snapshot = self.call("GET", "/control/state/")
        return answer

    def restore(self, state: Document) -> answers.Project:
        """Restore a snapshot of this or another project (CTL-10, CTL-11)."""
        answer: answers.Project = self.call("PUT", "/control/state/", body=state)
        return answer

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
        answer: answers.WaitResult = self.call(
            "GET",
            "/control/wait/",
            query=without_none(
                order_id=order_id,
                status=status,
                webhook=webhook,
                idle=idle,
                timeout=None if timeout_seconds is None else to_seconds(timeout_seconds),
            ),
        )
        return answer

    def next_offers(
        self,
        *,
        timeout_seconds: Annotated[
            float | timedelta, "The time to wait for a webhook, in real seconds; 20 by default, 60 at most."
        ]
        | None = None,
        listener: Annotated[str, "A unique name of this listener; a newer listener replaces it."]
        | None = None,
        forward_to: Annotated[str, "The shop's URL; becomes the setting of that name."] | None = None,
        leaves: Annotated[
            bool,
            "Whether the listener signs off: it gets no more webhooks, and the setting is reset to null.",
        ]
        | None = None,
    ) -> answers.Offers:
        """Wait for the next webhooks to deliver, for listeners such as the command ``listen``.

        A later call ends this call; attempts without a reported answer are offered again.
        """
        answer: answers.Offers = self.call(
            "POST",
            "/control/listener/next/",
            body=without_none(
                timeout=None if timeout_seconds is None else to_seconds(timeout_seconds),
                listener=listener,
                forward_to=forward_to,
                leaves=leaves,
            ),
        )
        return answer

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
        answer: bool = self.call(
            "POST",
            "/control/listener/answers/",
            body=without_none(
                id=attempt_id, status=status, body=body, error=error, warning=warning, duration_ms=duration_ms
            ),
        )["recorded"]
        return answer
