"""The traceback of a refusal ends at the line of the test, not inside the client."""

from pathlib import Path

from tests.support.suites import suite

CALLS = (
    "payment_sandbox.act('no-such-order')",
    "payment_sandbox.clock.advance('no duration')",
    "payment_sandbox.scenario('no-such-scenario')",
    "payment_sandbox.client.change_settings(mode='prod')",
    "payment_sandbox.wait_for('no-such-order', 'completed')",
    "asyncio.run(payment_sandbox.aio.act('no-such-order'))",
)
TESTS = "".join(f"\n\ndef test_{number}(payment_sandbox):\n    {call}\n" for number, call in enumerate(CALLS))


def test_a_refusal_ends_at_the_line_of_the_test(tmp_path: Path) -> None:
    """A traceback ends at the call in the test; ``--full-trace`` shows all of it."""
    for options, is_full in (("--tb=short", "--show-capture=no"), False), (("--full-trace",), True):
        output = suite(tmp_path, "import asyncio\n" + TESTS, *options).stdout
        failures = output.partition("short test summary")[0].split("___ test_")[1:]
        assert len(failures) == len(CALLS), output
        for failure in failures:
            traceback = failure.partition("- payment sandbox -")[0]
            assert "SandboxError" in traceback
            assert ("payment_sandbox/" in traceback) == is_full, traceback
