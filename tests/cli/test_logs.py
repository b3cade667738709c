"""The log of a served sandbox after an error."""

import json

import pytest

from tests.support.commands import run_python

RAISE = "raise ValueError('no, 4111 1111 1111 1111')"
IN_A_THREAD = f"""
import threading
def fail():
    {RAISE}
threading.Thread(target=fail).start()
"""
LOGGED = f"""
import logging
try:
    {RAISE}
except ValueError:
    logging.getLogger("payment_sandbox.x").exception("it failed with %s", "cvc=917391739173")
"""


def run_and_log(log_format: str, code: str) -> str:
    """Run code in a process; return its standard error."""
    setting = f"from payment_sandbox.cli.serve import set_up_logs; set_up_logs({log_format!r})\n"
    return run_python(setting + code).stderr


@pytest.mark.parametrize("code", [RAISE, IN_A_THREAD, LOGGED])
def test_a_traceback_has_the_form_of_the_log(code: str) -> None:
    """In any thread, a traceback is text without secrets, or one line of JSON where the log is JSON."""
    text, (line,) = run_and_log("text", code), run_and_log("json", code).splitlines()
    entry = json.loads(line)
    assert entry["level"] in ("critical", "error")
    assert entry["traceback"].endswith("ValueError: no, 0")
    assert "ValueError: no, 0" in text
    for each in (text, entry["traceback"]):
        assert "Traceback" in each
    for each in (text, line):
        assert "4111 1111" not in each
        assert "917391739173" not in each
