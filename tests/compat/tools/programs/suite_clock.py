import os
from datetime import timedelta

from payments import after


def test_the_clock_is_frozen_in_this_year(payment_sandbox):
    began = payment_sandbox.clock.now
    assert began.year == int(os.environ["YEAR"])
    assert after(payment_sandbox, "wait") == "expired"
    assert payment_sandbox.clock.now - began == timedelta(minutes=30)
