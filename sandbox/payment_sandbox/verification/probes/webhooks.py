"""Webhooks, where the service can reach an address of this machine."""

from payment_sandbox.verification.checks import CannotTell, Checks, holds
from payment_sandbox.verification.probing import probe
from payment_sandbox.verification.samples import CARD, TRANSFER, by
from payment_sandbox.verification.service import Service


@probe("HOOK-01", "HOOK-04", "HOOK-05", "HOOK-06", "HOOK-07", "HOOK-08", "SET-55", "AUTH-03", spends=True)
def of_a_transfer(service: Service) -> Checks:
    """A transfer is processing from the beginning, which its webhook tells."""
    order = service.order(by(TRANSFER), webhook_url=service.webhook_url)
    found = service.webhook_of(order)
    for rule in ("SET-55", "HOOK-04"):
        yield holds(rule, found is not None, f"no webhook came to {service.webhook_url}")
    if found is None:
        return
    mimetype = found.headers.get("Content-Type", "").partition(";")[0]
    yield holds("HOOK-01", mimetype == "application/json", f"the webhook is {mimetype or 'untyped'}")
    body = found.body if isinstance(found.body, dict) else {}
    for rule, name, value in (
        ("HOOK-05", "event", "status_changed"),
        ("HOOK-06", "order_id", order.at("id")),
        ("HOOK-07", "project_id", order.at("project_id")),
    ):
        yield holds(rule, body.get(name) == value, f"{name} in the webhook is {body.get(name)!r}")
    yield holds("HOOK-08", "status" not in body, "the webhook carries a status")
    yield holds("AUTH-03", "Authorization" not in found.headers, "the webhook has an Authorization header")


@probe("HOOK-02")
def of_a_visit(service: Service) -> Checks:
    """A visit changes the status, which a webhook tells."""
    order = service.order(by(CARD), webhook_url=service.webhook_url)
    service.visit(order)
    if service.read(order).at("status") == order.at("status"):
        raise CannotTell("the visit of a payment page changes no status")
    found = service.webhook_of(order)
    yield holds("HOOK-02", found is not None, "the status changed, and no webhook came")
