"""Paths, credentials, and what happens to requests that are no good."""

from typing import Final

from payment_sandbox.verification.answer import MISSING
from payment_sandbox.verification.checks import OBJECT, TEXT, Checks, accepted, holds, kind, refused, same
from payment_sandbox.verification.probing import probe
from payment_sandbox.verification.samples import NOBODY
from payment_sandbox.verification.service import ORDERS, Service

OVER_ONE_MIB: Final = b'{"currency": "EUR", "amount": 1000, "description": "' + b"x" * (1 << 20) + b'"}'


@probe("AUTH-01", "AUTH-02", "SET-02")
def credentials(service: Service) -> Checks:
    """Without the key nothing is answered, and the password does not matter."""
    without = service.call("GET", ORDERS + NOBODY + "/", key="")
    yield from refused("AUTH-01", without, 401, "Unauthorized")
    yield holds("SET-02", "WWW-Authenticate" in without.headers, "a 401 has no WWW-Authenticate")
    yield kind("SET-02", without, "error", OBJECT)
    yield from refused("AUTH-02", service.call("GET", ORDERS + NOBODY + "/", key="no-such-key"), 401)


@probe("VER-01", "VER-02", "SET-01")
def paths(service: Service) -> Checks:
    """Paths begin with /v1/, and a final slash does not matter."""
    order = service.order()
    yield holds("VER-01", service.read(order).is_success, "an order cannot be read under /v1/")
    for path in ("/orders/", "/v2/orders/"):
        yield from refused("VER-02", service.call("POST", path, {"currency": "EUR", "amount": 1000}), 404)
    for path in (f"{ORDERS}{order.at('id')}/", f"{ORDERS}{order.at('id')}"):
        answer = service.call("GET", path)
        yield holds("SET-01", answer.status == 200, f"GET {path} is {answer.told}")
    without = service.call("POST", "/v1/orders", {"currency": "EUR", "amount": 1000})
    yield holds("SET-01", without.is_success, f"POST /v1/orders is {without.told}")


@probe("END-01", "END-02", "SET-07", "GEN-01")
def a_creation(service: Service) -> Checks:
    """Amount and currency are enough."""
    answer = service.create(description=...)
    yield from accepted("GEN-01", answer)
    yield holds("END-02", answer.status == 201, answer.told)
    mimetype = answer.headers.get("Content-Type", "").partition(";")[0]
    yield holds("END-01", mimetype == "application/json", f"the answer is {mimetype or 'untyped'}")


@probe("SET-03", "SET-04", "SET-05")
def errors(service: Service) -> Checks:
    """One shape of errors, with all problems at once."""
    answer = service.create(currency="USD", amount=-1, return_url="no address")
    for place, expected in (("error", OBJECT), ("error.type", TEXT), ("error.value", TEXT)):
        yield kind("SET-03", answer, place, expected)
    yield same("SET-03", answer, "error.status", answer.status)
    yield same("SET-04", answer, "error.type", "ValidationError")
    violations = answer.at("error.violations")
    found = [each.get("path") for each in violations] if isinstance(violations, list) else []
    missed = {"currency", "amount", "return_url"} - set(found)
    yield holds("SET-05", not missed, f"the violations do not name {', '.join(sorted(missed))}")
    other = service.call("GET", "/v1/no-such-path/")
    yield kind("SET-03", other, "error.type", TEXT)


@probe("SET-08", "SET-09")
def statuses_of_refusals(service: Service) -> Checks:
    """Each kind of bad request has its status."""
    yield from refused("SET-08", service.call("GET", f"{ORDERS}{NOBODY}/"), 404, "NotFound")
    yield from refused("SET-08", service.call("PATCH", ORDERS, {}), 405, "MethodNotAllowed")
    yield from refused("SET-08", service.call("POST", ORDERS, content=b'{"currency": '), 400, "BadRequest")
    yield from refused("SET-08", service.call("POST", ORDERS, [1]), 400)
    large = service.call("POST", ORDERS, content=OVER_ONE_MIB)
    yield from refused("SET-09", large, 413, "RequestEntityTooLarge")
    text = service.call("POST", ORDERS, content=b"amount=1", headers={"Content-Type": "text/plain"})
    yield from refused("SET-09", text, 415, "UnsupportedMediaType")


@probe("SET-12", "SET-14")
def unknown_fields(service: Service) -> Checks:
    """Unknown keys are dropped and named; client and extra are free."""
    answer = service.create(amuont=5, client={"user_agent": "probe/1", "shop": 7}, extra={"basket": [1, 2]})
    yield holds("SET-12", answer.is_success, f"an unknown key is refused: {answer.told}")
    if answer.is_success:
        named = answer.headers.get("Sandbox-Ignored-Fields", "")
        is_quiet = answer.at("amuont") is MISSING
        yield holds("SET-12", is_quiet, "an unknown key is echoed")
        yield holds("SET-12", not named or "amuont" in named, f"Sandbox-Ignored-Fields is {named!r}")
        yield same("SET-14", answer, "extra", {"basket": [1, 2]})
        yield same("SET-14", answer, "client.shop", 7)
