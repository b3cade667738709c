"""Probes that wait for webhooks to be retried; only ``--patient`` runs them."""

from collections.abc import Iterator
from typing import Final

from payment_sandbox_verify.answer import ServiceAnswer
from payment_sandbox_verify.checks import CannotTell, Checks, holds
from payment_sandbox_verify.probing import probe
from payment_sandbox_verify.samples import TRANSFER, transaction_by
from payment_sandbox_verify.service import Service

APART_SECONDS: Final = 120
MARGIN_SECONDS: Final = 20
STEP_SECONDS: Final = 5
DELIVERIES: Final = 10
SLOW_SECONDS: Final = 7.0


@probe("HOOK-09", "HOOK-10", "HOOK-11", "HOOK-12", "LIM-06", spends=True)
def failing_webhook(service: Service) -> Checks:
    """The service attempts a webhook ten times, two minutes apart, if the shop answers with 4xx or 5xx."""
    order = _order_with_webhook(service, 503, 404, 500)
    waited = list(_waits(service, order))
    came = len(waited) + 1
    yield holds("HOOK-10", came > 1, "a webhook that was answered with 503 was not retried")
    if came > 1:
        yield holds("HOOK-09", came > 2, "a webhook that was answered with 404 was not retried")
    if came > 2:
        for rule in ("HOOK-12", "LIM-06"):
            yield holds(rule, came == DELIVERIES, f"a webhook was attempted {came} times, not ten")
    for seconds in waited:
        for rule in ("HOOK-11", "LIM-06"):
            is_so = abs(seconds - APART_SECONDS) <= MARGIN_SECONDS
            yield holds(rule, is_so, f"attempts are {seconds} s apart, not two minutes")


def _waits(service: Service, order: ServiceAnswer) -> Iterator[int]:
    """Yield the delay of each retry in seconds, up to one retry too many."""
    for nth in range(2, DELIVERIES + 2):
        seconds = _until_next(service, order, nth)
        if seconds is None:
            return
        yield seconds


@probe("SET-57", spends=True)
def slow_webhook(service: Service) -> Checks:
    """An answer after more than five seconds counts as a failure, so the webhook is retried."""
    order = _order_with_webhook(service, 200, delay_seconds=SLOW_SECONDS)
    again = _until_next(service, order, 2)
    yield holds("SET-57", again is not None, f"a response after {SLOW_SECONDS:g} s is accepted")


@probe("SET-58", spends=True)
def redirected_webhook(service: Service) -> Checks:
    """A redirect is not followed, and the webhook is not retried."""
    order = _order_with_webhook(service, 302)
    again = _until_next(service, order, 2)
    yield holds("SET-58", again is None, "a webhook that was answered with a redirect was retried")


def _order_with_webhook(service: Service, *statuses: int, delay_seconds: float = 0.0) -> ServiceAnswer:
    """Create an order, and answer its webhooks with some statuses; return it after the first webhook.

    Raises:
        CannotTell: the option --patient is missing, or no webhook comes.
    """
    if not service.is_patient:
        raise CannotTell("needs half an hour: try --patient, with --webhook-url")
    service.answer_webhooks(*statuses, delay_seconds=delay_seconds)
    order = service.order(transaction_by(TRANSFER), webhook_url=service.webhook_url)
    if service.webhook_of(str(order.at("id"))) is None:
        raise CannotTell(f"no webhook came to {service.webhook_url}")
    return order


def _until_next(service: Service, order: ServiceAnswer, nth: int) -> int | None:
    """Return the seconds until the next webhook of an order; None if it does not come."""
    for waited in range(STEP_SECONDS, APART_SECONDS + 2 * MARGIN_SECONDS, STEP_SECONDS):
        service.pause(STEP_SECONDS)
        if service.webhook_of(str(order.at("id")), nth=nth, within_seconds=0) is not None:
            return waited
    return None
