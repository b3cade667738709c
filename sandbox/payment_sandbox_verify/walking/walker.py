"""Runs the call sequences against a service, and pays and cancels on its pages."""

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Final, NamedTuple
from urllib.parse import parse_qs, urlsplit

from payment_sandbox.client.receiver import ReceivedWebhook
from payment_sandbox_verify.answer import MISSING, ServiceAnswer
from payment_sandbox_verify.checks import Check, Checks, check_that
from payment_sandbox_verify.model.calls import Act, Advance
from payment_sandbox_verify.model.records import START, Order, Refund, Shop, add_period
from payment_sandbox_verify.probing import HiddenByDifference, Probe
from payment_sandbox_verify.samples import RETURN_URL, WEBHOOK_URL
from payment_sandbox_verify.service import ORDERS_PATH, WEBHOOK_SECONDS, Service
from payment_sandbox_verify.walking.driver import Driver
from payment_sandbox_verify.walking.judge import Deviation, Judge
from payment_sandbox_verify.walking.sequences import CallSequence, call_sequences

OK: Final = 200
QUIET_SECONDS: Final = 0.5
UNCHANGED_TIME: Final = "modified does not change with the status"
RETRY_SECONDS: Final = 125.0
WEBHOOK_RULES: Final = (
    "HOOK-01",
    "HOOK-02",
    "HOOK-04",
    "HOOK-05",
    "HOOK-06",
    "HOOK-07",
    "HOOK-08",
    "AUTH-03",
    "SET-55",
)


class PageDriver(Driver):
    """A driver for a service without a control API: customers act on its pages."""

    def __init__(self, service: Service) -> None:
        url = service.receiver.url if service.receiver is not None else WEBHOOK_URL
        order_fields = {"return_url": RETURN_URL, "webhook_url": url}
        super().__init__(service.call, lambda: service.issuer, order_fields)
        self._service = service
        self.returns: list[
            tuple[str, ServiceAnswer, str]
        ] = []  # action, order, and URL to which the customer returned

    def _act(self, call: Act) -> ServiceAnswer:
        order = self._service.call("GET", self._order_path(call))
        url, payer = self._service.payment_page_url(order), self._service.payer
        payment = f"{order.at('amount')} cents"
        if call.action == "visit":
            payer.visit(url)
        elif call.action == "choose":
            payer.choose(url, call.method)
        else:
            returned_to = payer.pay(url, payment) if call.action == "pay" else payer.cancel(url, payment)
            self.returns += [(call.action, order, returned_to)] if returned_to is not None else []
        return ServiceAnswer("the customer's", call.action, None, OK, {}, None)

    def _advance(self, call: Advance) -> ServiceAnswer:
        seconds = (add_period(START, call.by) - START).total_seconds()
        self._service.pause(seconds)
        return ServiceAnswer("the passing of", f"{seconds:g} seconds", None, OK, {}, None)


class ExpectedWebhooks(NamedTuple):
    """The expected number of webhooks for an order or refund, with its last status and project."""

    id: str
    changes: int
    status: str
    project: str


def _expected_webhooks(driver: PageDriver, shop: Shop) -> Iterator[ExpectedWebhooks]:
    """Yield the webhooks expected for a sequence's orders and refunds."""
    for number, order in enumerate(shop.orders):
        records: list[Order | Refund] = [order, *order.refunds]
        ids = [driver.ids.orders[number], *driver.ids.refunds[number]]
        for order_id, record in zip(ids, records, strict=True):
            yield ExpectedWebhooks(order_id, len(record.webhooks), record.status, driver.project)


class Walker:
    """A run of all call sequences; the last probe counts the webhooks for their orders."""

    def __init__(self) -> None:
        self._expected: list[ExpectedWebhooks] = []
        self._created: set[object] = set()  # creation times

    def probes(self) -> Iterator[Probe]:
        """Yield a probe for each sequence, and a probe for the webhooks of all orders."""
        for sequence in call_sequences():
            yield Probe(partial(self._walk, sequence), sequence.rules, sequence.is_costly, sequence.name)
        yield Probe(self._check_all_webhooks, WEBHOOK_RULES, False, "webhooks of all orders")

    def _walk(self, sequence: CallSequence, service: Service) -> Checks:
        """Run one sequence until the model no longer knows the state.

        Raises:
            HiddenByDifference: a difference prevents later checks.
        """
        driver = PageDriver(service)
        judge = Judge(driver, Shop(mode="live" if service.is_live else "test"), reads_all=False)
        is_read = True
        for each in sequence.steps:
            before = set(judge.rules)
            if not is_read and not each.is_refused:
                yield from _failed_checks(judge.compare_reads())
            is_read = not each.is_refused
            yield from _failed_checks(judge.make_call(each.call, reads=is_read))
            yield from (Check(rule, True, "", judge.answer) for rule in _newly_proven_rules(judge, before))
        yield from _failed_checks([] if is_read else judge.compare_reads())
        yield from _check_returns(driver)
        yield from self._check_modification_times(service, judge)
        self._expected += list(_expected_webhooks(driver, judge.shop))

    def _check_modification_times(self, service: Service, judge: Judge) -> Checks:
        """Report modification times left unchanged by status changes, unless the server's clock is frozen."""
        self._created |= {answer.at("created") for answer in service.answers if answer.path == ORDERS_PATH}
        if len(self._created - {MISSING}) > 1:
            yield from (check_that(rule, False, UNCHANGED_TIME) for rule in sorted(judge.unchanged_times))

    def _check_all_webhooks(self, service: Service) -> Checks:
        """Check the webhooks of every order: one for each status change."""
        wait_seconds = WEBHOOK_SECONDS if service.webhook_url else 0.0
        missing = []
        for expected in self._expected:
            if (
                expected.changes
                and service.wait_for_webhook(expected.id, nth=expected.changes, within_seconds=wait_seconds)
                is None
            ):
                missing.append(expected)
                wait_seconds = 0.0
        yield from self._check_repeated_webhooks(service)
        service.pause(RETRY_SECONDS if missing else 0.0)  # wait for retries of failed deliveries
        for expected in self._expected:
            yield from _check_webhooks(service, expected)

    def _check_repeated_webhooks(self, service: Service) -> Checks:
        wait_seconds = QUIET_SECONDS
        for expected in self._expected:
            extra = service.wait_for_webhook(
                expected.id, nth=expected.changes + 1, within_seconds=wait_seconds
            )
            wait_seconds = 0.0
            reason = f"{expected.changes + 1} webhooks arrived for {expected.changes} changes"
            reason += f" of an order with status {expected.status}"
            yield check_that("HOOK-02" if expected.changes else "SET-55", extra is None, reason)


def _check_webhooks(service: Service, expected: ExpectedWebhooks) -> Checks:
    """Check each webhook of an order."""
    for nth in range(1, expected.changes + 1):
        webhook = service.wait_for_webhook(expected.id, nth=nth, within_seconds=0)
        if webhook is None:
            reason = (
                f"{nth - 1} of {expected.changes} webhooks arrived for an order with status {expected.status}"
            )
            yield check_that("SET-55" if expected.changes == 1 else "HOOK-02", False, reason)
            return
        yield from check_webhook(webhook, expected.project)


def _newly_proven_rules(judge: Judge, before: set[str]) -> list[str]:
    """Return the rules first proved by a step; a refusal that proves no new rule counts for SET-04."""
    rules = [rule for rule in judge.rules if rule not in before]
    is_refusal = judge.answer is not None and not judge.answer.is_success
    return rules or (["SET-04"] if is_refusal else [])


def _failed_checks(differences: Iterable[Deviation]) -> Checks:
    """Convert differences to failed checks.

    Raises:
        HiddenByDifference: a difference prevents later checks.
    """
    for each in differences:
        yield from (Check(rule, False, each.reason, each.refusal) for rule in each.rules)
        if each.is_final:
            raise HiddenByDifference(each.rules[0], each.reason)


def _check_returns(driver: PageDriver) -> Checks:
    """Check that customers return to the shop with the ids of order and project, paid or not."""
    for action, order, returned_to in driver.returns:
        rule = "FLOW-14" if action == "pay" else "FLOW-15"
        is_shop = returned_to.startswith(RETURN_URL.partition("?")[0])
        for each in ("ORD-09", *(("FLOW-02",) if order.at("order_url") is not MISSING else ())):
            yield check_that(each, is_shop, f"the customer returned to {returned_to}")
        query = parse_qs(urlsplit(returned_to).query)
        expected = {"order_id": order.at("id"), "project_id": order.at("project_id"), "basket": "7"}
        missing = [name for name, value in expected.items() if query.get(name) != [value]]
        yield check_that(
            rule, not missing, f"the customer returned without {' and '.join(missing)}: {returned_to}"
        )


def check_webhook(webhook: ReceivedWebhook, project_id: str) -> Checks:
    """Check the headers and the body of a webhook."""
    yield from (Check(rule, True) for rule in ("HOOK-02", "HOOK-04", "SET-55", "HOOK-06"))
    mimetype = webhook.headers.get("Content-Type", "").partition(";")[0]
    yield check_that(
        "HOOK-01", mimetype == "application/json", f"a webhook has Content-Type {mimetype or 'none'}"
    )
    event, project = webhook.body.get("event"), webhook.body.get("project_id")
    yield check_that("HOOK-05", event == "status_changed", f"the webhook's event is {event!r}")
    yield check_that("HOOK-07", project == project_id, f"project_id in the webhook is {project!r}")
    yield check_that("HOOK-08", "status" not in webhook.body, "the webhook carries a status")
    has_no_credentials = "Authorization" not in webhook.headers
    yield check_that("AUTH-03", has_no_credentials, "the webhook has an Authorization header")
