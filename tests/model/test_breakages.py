"""The model bites: in a copy of the package one subtle thing is broken, and the model disagrees."""

from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support.changed_package import PACKAGE, ChangedPackage

ROOT = PACKAGE.parents[1]


class Breakage(NamedTuple):
    """One subtle change of the engine."""

    path: str
    old: str
    new: str


BREAKAGES = {
    "an eleventh delivery": Breakage(
        "orders/webhooks.py", "attempt.number >= DELIVERIES_MAX", "attempt.number > DELIVERIES_MAX"
    ),
    "a capture by lines after one by amount": Breakage(
        "orders/authorization.py", "if bound not in (None, style):", "if bound is Style.LINES is not style:"
    ),
    "a cancellation after a part of a transfer": Breakage(
        "operations/cancel.py", "if credited_cents:", "if credited_cents < 0:"
    ),
    "an authorization that expires from its creation": Breakage(
        "operations/steps.py",
        "Period.parse(attempt.expiration_period).after(edit.now)",
        "Period.parse(attempt.expiration_period).after(attempt.created)",
    ),
    "a failed refund that still counts": Breakage(
        "orders/refunds.py",
        "sum(refund.amount_cents for refund in order.refunds if not refund.failed)",
        "sum(refund.amount_cents for refund in order.refunds)",
    ),
    "a recurring series of a moment more than a year": Breakage(
        "orders/cards.py",
        "self.use == RECURRING and now >= ends_at",
        "self.use == RECURRING and now > ends_at",
    ),
    "a smallest amount that is refused": Breakage(
        "orders/qr.py", "if amount_cents < low or", "if amount_cents <= low or"
    ),
}

PROGRAM = f"""
import sys
from pathlib import Path

import payment_sandbox

assert Path(payment_sandbox.__file__).parent == Path("payment_sandbox").resolve(), "this is not the copy"
sys.path.append({str(ROOT)!r})

from payment_sandbox.testing.servers import PaymentSandboxServer
from tests.model.exploring import PLACES, explored_from
from tests.model.judge import Disagreement
from tests.model.walking import in_process, walk

server = PaymentSandboxServer()
try:
    for place in PLACES:
        explored_from(server, place, 2, 300)
    walk(in_process(server), 100, 40, shrinks=False)
    print("nothing noticed")
except Disagreement as disagreement:
    print(f"noticed: {{disagreement}}")
finally:
    server.stop()
"""


@pytest.mark.prove
@pytest.mark.parametrize("name", BREAKAGES)
def test_a_broken_server_is_noticed(name: str, tmp_path: Path) -> None:
    """By a call that is answered wrongly, or by what is read afterwards."""
    package = ChangedPackage(tmp_path)
    package.replace(*BREAKAGES[name])
    said = package.run(PROGRAM, timeout_seconds=240)
    assert said.startswith("noticed: "), said
