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
def test_a_traceback_is_json_where_the_log_is(code: str) -> None:
    """A traceback is one JSON line without secrets, in any thread."""
    text = run_and_log("json", code)
    (line,) = text.splitlines()
    entry = json.loads(line)
    assert entry["traceback"].startswith("Traceback")
    assert entry["level"] in ("critical", "error")
    assert entry["traceback"].endswith("ValueError: no, 0")
    assert "4111 1111" not in text
    assert "917391739173" not in text


@pytest.mark.parametrize("code", [RAISE, IN_A_THREAD, LOGGED])
def test_a_traceback_is_text_where_people_read(code: str) -> None:
    """A traceback is text without secrets."""
    text = run_and_log("text", code)
    assert "Traceback" in text
    assert "ValueError: no, 0" in text
    assert "4111 1111" not in text
