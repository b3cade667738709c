"""The ledger of an authorization, as tables: one operation per row."""

from datetime import UTC, datetime, timedelta

import pytest

from payment_sandbox.orders.authorization import Authorization
from payment_sandbox.orders.lines import LineQuantity, OrderLine
from payment_sandbox.orders.refusals import Invalid, Refusal

NOW = datetime(2026, 3, 1, tzinfo=UTC)
LINES = (OrderLine(500, 3, "EUR", "physical", "Socks", "a"), OrderLine(250, 2, "EUR", "physical", "Hat", "b"))


def new_authorization(delayed: bool = False) -> Authorization:
    """Return an authorization of 2000 cents: three of a for 500, two of b for 250."""
    return Authorization(2000, LINES, delayed, NOW, NOW + timedelta(days=7))


def run(authorization: Authorization, row: str) -> Authorization:
    """Run one operation: ``capture``, ``capture 5``, ``capture a2 b1``, ``void 5``, ``void a1``, ``end``."""
    verb, *arguments = row.split()
    now = authorization.authorized_at
    if verb == "end":
        return authorization.close()
    if not arguments:
        return (
            authorization.capture_remainder(now=now)
            if verb == "capture"
            else authorization.void_remainder(now=now)
        )
    if arguments[0].isdigit():
        take = authorization.capture_amount if verb == "capture" else authorization.void_amount
        return take(int(arguments[0]), None, now=now)
    take_lines = authorization.capture_lines if verb == "capture" else authorization.void_lines
    return take_lines([LineQuantity(item[0], int(item[1:])) for item in arguments], None, now=now)


TABLE = """
capture 500                                     | 500 0 1500
capture 500, capture 500, capture 1000          | 2000 0 0
capture 500, capture 1501                       | CaptureExceedsRemainder
capture a2                                      | 1000 0 1000
capture a2 b1, void b1                          | 1250 250 500
capture a1, capture 1                           | CaptureStyleMixed
capture 1, capture a1                           | CaptureStyleMixed
capture a1, capture                             | 2000 0 0
capture 1, capture                              | 2000 0 0
capture, capture                                | CaptureExceedsRemainder
capture, void 1                                 | VoidExceedsRemainder
void 2000                                       | 0 2000 0
void 2000, capture                              | CaptureExceedsRemainder
void 1999, capture 1                            | 1 1999 0
void 1, void a3, void b2                        | VoidExceedsRemainder
void a3, capture a1                             | CaptureExceedsRemainder
void a1, capture 1500                           | 1500 500 0
capture a1, void 1400, capture a2               | CaptureExceedsRemainder
void 2001                                       | VoidExceedsRemainder
capture a4                                      | CaptureExceedsRemainder
capture c1                                      | Invalid
void c1                                         | Invalid
end, capture                                    | AuthorizationExpired
end, void 1                                     | AuthorizationExpired
"""


@pytest.mark.rule("CAP-08", "CAP-09", "SET-47", "VOID-01", "VOID-02")
@pytest.mark.parametrize("row", TABLE.strip().splitlines())
def test_the_ledger(row: str) -> None:
    """Operations lead to the expected captured, voided and remaining amounts, or to a refusal."""
    operations, _, expected = (part.strip() for part in row.partition("|"))
    authorization = new_authorization()
    *before, last = operations.split(", ")
    for operation in before:
        authorization = run(authorization, operation)
    if not expected[0].isdigit():
        with pytest.raises((Refusal, Invalid)) as refused:
            run(authorization, last)
        assert type(refused.value).__name__ == expected
        return
    after = run(authorization, last)
    assert [after.captured_cents, after.voided_cents, after.remaining_cents] == [
        int(n) for n in expected.split()
    ]
    assert after.captured_cents + after.voided_cents + after.remaining_cents == after.original_cents


@pytest.mark.rule("CAP-04")
def test_expiry_is_at_its_moment_and_not_before() -> None:
    """A capture is possible until a microsecond before the expiry."""
    authorization = new_authorization()
    last = authorization.expires_at - timedelta(microseconds=1)
    assert authorization.capture_amount(1, None, now=last).captured_cents == 1
    with pytest.raises(Refusal, match="expired at"):
        authorization.capture_amount(1, None, now=authorization.expires_at)


def test_a_ledger_is_never_changed() -> None:
    """An operation returns a new ledger with one more entry, and leaves the old one unchanged."""
    before = new_authorization()
    after = run(before, "capture 5")
    assert (before.entries, len(after.entries)) == ((), 1)
