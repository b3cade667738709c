"""The model bites: in a copy of the package one subtle thing is broken, and the model disagrees."""

import os
from hashlib import sha256
from pathlib import Path

import pytest

from tests.model.breakages import BREAKAGES, Breakage
from tests.support.changed_package import PACKAGE, ChangedPackage

ROOT = PACKAGE.parents[1]
SAMPLE = int(os.environ.get("MODEL_BREAKAGES", "12"))  # others each day, see the Makefile
DAY = os.environ.get("DAY", "")

PROGRAM = f"""
import sys
from pathlib import Path

import payment_sandbox

assert Path(payment_sandbox.__file__).parent == Path("payment_sandbox").resolve(), "this is not the copy"
sys.path.append({str(ROOT)!r})

from payment_sandbox.testing.servers import PaymentSandboxServer
from tests.model.exploring import PLACES, explored_from, explored_in_a_project
from tests.model.judge import Disagreement
from tests.model.walking import METHOD_OR_PAGE

server = PaymentSandboxServer()
try:
    if WHERE in METHOD_OR_PAGE:
        explored_in_a_project(server, WHERE, "live", 2, 60)
    for length, most in ((1, 100), (2, 300)):
        for place in sorted(PLACES, key=lambda place: place != WHERE):
            explored_from(server, place, length, most)
    print("nothing noticed")
except Disagreement as disagreement:
    print(f"noticed: {{disagreement}}")
finally:
    server.stop()
"""


def of_the_day() -> list[Breakage]:
    """So many of the breakages, others each day."""
    return sorted(BREAKAGES, key=lambda each: sha256(f"{DAY}/{each.sentence}".encode()).digest())[:SAMPLE]


@pytest.mark.prove
@pytest.mark.parametrize("breakage", of_the_day(), ids=lambda each: f"{each.rule}: {each.sentence}")
def test_a_broken_server_is_noticed(breakage: Breakage, tmp_path: Path) -> None:
    """By a call that is answered wrongly, or by what is read afterwards."""
    package = ChangedPackage(tmp_path)
    package.replace(breakage.path, breakage.old, breakage.new)
    said = package.run(f"WHERE = {breakage.where!r}\n{PROGRAM}", timeout_seconds=240)
    assert said.startswith("noticed: "), said


def test_each_breakage_can_still_be_planted() -> None:
    """Also those that are not in today's sample."""
    counts = {each.sentence: (PACKAGE / each.path).read_text().count(each.old) for each in BREAKAGES}
    assert {sentence: count for sentence, count in counts.items() if count != 1} == {}
