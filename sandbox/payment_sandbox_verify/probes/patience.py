"""Probes that wait for webhooks to be retried; only ``--patient`` runs them."""

from collections.abc import Iterator
from typing import Final

from payment_sandbox_verify.answer import ServiceAnswer
from payment_sandbox_verify.checks import CannotTell, Checks, check_that
from payment_sandbox_verify.probing import probe
from payment_sandbox_verify.samples import TRANSFER, transaction_with
from payment_sandbox_verify.service import Service

RETRY_SECONDS: Final = 120
MARGIN_SECONDS: Final = 20
POLL_SECONDS: Final = 5
ATTEMPTS: Final = 10
SLOW_SECONDS: Final = 7.0


@probe("HOOK-09", "HOOK-10", "HOOK-11", "HOOK-12", "LIM-06", is_costly=True)
def failing_webhook(service: Service) -> Checks:
    """The service attempts a webhook ten times, two minutes apart, if the shop answers with 4xx or 5xx."""
    order = _order_with_webhook(service, 503, 404, 500)
    delays = list(_retry_delays(service, order))
    attempts = len(delays) + 1
    yield check_that("HOOK-10", attempts > 1, "a webhook that was answered with 503 was not retried")
    if attempts > 1:
        yield check_that("HOOK-09", attempts > 2, "a webhook that was answered with 404 was not retried")
    if attempts > 2:
        for rule in ("HOOK-12", "LIM-06"):
            yield check_that(rule, attempts == ATTEMPTS, f"a webhook was attempted {attempts} times, not ten")
    for seconds in delays:
        for rule in ("HOOK-11", "LIM-06"):
            is_on_time = abs(seconds - RETRY_SECONDS) <= MARGIN_SECONDS
            yield check_that(rule, is_on_time, f"attempts are {seconds} s apart, not two minutes")


def _retry_delays(service: Service, order: ServiceAnswer) -> Iterator[int]:
    """Yield the delay of each retry in seconds, including a retry that exceeds the limit."""
    for nth in range(2, ATTEMPTS + 2):
        seconds = _wait_for_retry(service, order, nth)
        if seconds is None:
            return
        yield seconds


@probe("SET-57", is_costly=True)
def slow_webhook(service: Service) -> Checks:
    """An answer after more than five seconds counts as a failure, so the webhook is retried."""
    order = _order_with_webhook(service, 200, delay_seconds=SLOW_SECONDS)
    retried_after = _wait_for_retry(service, order, 2)
    yield check_that("SET-57", retried_after is not None, f"a response after {SLOW_SECONDS:g} s is accepted")


@probe("SET-58", is_costly=True)
def redirected_webhook(service: Service) -> Checks:
    """A redirect is not followed, and the webhook is not retried."""
    order = _order_with_webhook(service, 302)
    retried_after = _wait_for_retry(service, order, 2)
    yield check_that(
        "SET-58", retried_after is None, "a webhook that was answered with a redirect was retried"
    )


def _order_with_webhook(service: Service, *statuses: int, delay_seconds: float = 0.0) -> ServiceAnswer:
    """Create an order, and answer its webhooks with ``statuses``; return the order after the first webhook.

    Raises:
        CannotTell: the option --patient is missing, or no webhook arrives.
    """
    if not service.is_patient:
        raise CannotTell("needs half an hour: try --patient, with --webhook-url")
    service.answer_webhooks(*statuses, delay_seconds=delay_seconds)
    order = service.new_order(transaction_with(TRANSFER), webhook_url=service.webhook_url)
    if service.wait_for_webhook(str(order.at("id"))) is None:
        raise CannotTell(f"no webhook arrived at {service.webhook_url}")
    return order


def _wait_for_retry(service: Service, order: ServiceAnswer, nth: int) -> int | None:
    """Return the seconds until the next webhook of an order; None if it does not arrive."""
    for waited in range(POLL_SECONDS, RETRY_SECONDS + 2 * MARGIN_SECONDS, POLL_SECONDS):
        service.pause(POLL_SECONDS)
        if service.wait_for_webhook(str(order.at("id")), nth=nth, within_seconds=0) is not None:
            return waited
    return None
