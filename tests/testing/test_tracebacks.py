"""The traceback of a refusal ends at the line of the test, not inside the client."""

from pathlib import Path

import pytest

from tests.support.suites import suite

CALLS = (
    "payment_sandbox.act('no-such-order')",
    "payment_sandbox.clock.advance('no duration')",
    "payment_sandbox.scenario('no-such-scenario')",
    "payment_sandbox.client.change_settings(mode='prod')",
    "payment_sandbox.wait_for('no-such-order', 'completed')",
    "asyncio.run(payment_sandbox.aio.act('no-such-order'))",
)


@pytest.mark.parametrize("call", CALLS)
def test_a_refusal_ends_at_the_line_of_the_test(call: str, tmp_path: Path) -> None:
    """A traceback ends at the call in the test; ``--full-trace`` shows all of it."""
    test = f"""
import asyncio


def test_it(payment_sandbox):
    {call}
"""
    output = suite(tmp_path, test, "--tb=short").stdout
    failure = output.partition("Captured")[0].partition("short test summary")[0]
    assert "SandboxError" in failure
    assert "payment_sandbox/" not in failure, failure
    full_output = suite(tmp_path, test, "--tb=short", "--full-trace").stdout
    assert "payment_sandbox/" in full_output
