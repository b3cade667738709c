"""The log of a served sandbox after an error."""

import json

from tests.support.commands import run_python

FAIL = """
import logging, threading
from payment_sandbox.cli.serve import set_up_logs
def fail():
    raise ValueError("no, 4111 1111 1111 1111")
set_up_logs(LOG_FORMAT)
thread = threading.Thread(target=fail)
thread.start()
thread.join()
try:
    fail()
except ValueError:
    logging.getLogger("payment_sandbox.x").exception("it failed with %s", "cvc=917391739173")
fail()
"""


def test_tracebacks_have_the_form_of_the_log() -> None:
    """In a thread, in a log and at the end, a traceback is text without secrets, or a line of a JSON log."""
    text, lines = (run_python(FAIL.replace("LOG_FORMAT", repr(each))).stderr for each in ("text", "json"))
    assert (text.count("Traceback"), text.count("ValueError: no, 0")) == (3, 3)
    entries = [json.loads(line) for line in lines.splitlines()]
    assert len(entries) == 3
    for entry in entries:
        assert entry["level"] in ("critical", "error")
        assert "Traceback" in entry["traceback"]
        assert entry["traceback"].endswith("ValueError: no, 0")
    for each in (text, lines):
        assert "4111 1111" not in each
        assert "917391739173" not in each
