"""Reading, blocks, entity tags and updates of an order."""

from payment_sandbox.verification.checks import LIST, OBJECT, Checks, absent, holds, kind, refused, same
from payment_sandbox.verification.probing import probe
from payment_sandbox.verification.samples import CARD, CUSTOMER, LINES, LINES_TOTAL, WEBHOOK_URL, by
from payment_sandbox.verification.service import ORDERS, Service

BLOCKS = ("order_line_details", "amount_details")


@probe("END-03", "END-04", "END-05", "END-06", "ORD-28", "ORD-29")
def blocks(service: Service) -> Checks:
    """An order is read with the blocks that were asked for."""
    order = service.order(by(CARD), amount=LINES_TOTAL, order_lines=LINES)
    plain = service.read(order)
    yield same("END-03", plain, "id", order.at("id"))
    yield absent("ORD-28", plain, BLOCKS[0])
    yield absent("ORD-29", plain, BLOCKS[1])
    yield kind("END-04", service.read(order, BLOCKS[0]), BLOCKS[0], LIST)
    yield kind("END-05", service.read(order, BLOCKS[1]), BLOCKS[1], OBJECT)
    both = service.read(order, *BLOCKS)
    yield kind("END-06", both, BLOCKS[0], LIST)
    yield kind("END-06", both, BLOCKS[1], OBJECT)


@probe("SET-32", "SET-33", "SET-34")
def entity_tags(service: Service) -> Checks:
    """An order has an ETag, which guards changes and saves reads."""
    order = service.order()
    read = service.read(order)
    etag = read.headers.get("ETag", "")
    yield holds("SET-32", etag.startswith('"'), f"the ETag of an order is {etag or 'missing'}")
    place = f"{ORDERS}{order.at('id')}/"
    again = service.call("GET", place, headers={"If-None-Match": etag or '"x"'})
    yield holds("SET-34", again.status == 304, f"a read with If-None-Match is {again.told}")
    stale = service.call("DELETE", place, headers={"If-Match": '"stale"'})
    yield from refused("SET-33", stale, 412, "PreconditionFailed")


@probe("SET-51", "SET-52", "SET-53")
def updates(service: Service) -> Checks:
    """PUT changes what the customer has not seen, and takes the whole order as it was read."""
    order = service.order()
    place = f"{ORDERS}{order.at('id')}/"
    changes = {
        "description": "Changed by a probe",
        "merchant_order_id": "probe-2",
        "return_url": "https://shop.invalid/changed",
        "webhook_url": WEBHOOK_URL,
        "customer": CUSTOMER,
        "extra": {"basket": 8},
    }
    changed = service.call("PUT", place, changes)
    yield holds("SET-51", changed.status == 200, f"PUT is {changed.told}")
    if changed.is_success:
        for name in ("description", "merchant_order_id", "return_url", "webhook_url", "extra"):
            yield same("SET-51", changed, name, changes[name])
    raised = service.call("PUT", place, {"amount": 1100})
    yield holds("SET-52", raised.at("amount") == 1100, f"a new amount is {raised.told}")
    whole = dict(service.read(order).data or {}, description="Whole", status="completed", merchant_id="x")
    answer = service.call("PUT", place, whole)
    yield holds("SET-53", answer.status == 200, f"PUT of the whole order is {answer.told}")
    if answer.is_success:
        yield same("SET-53", answer, "description", "Whole")
        yield same("SET-53", answer, "status", order.at("status"))
