"""The model notices subtle changes to the engine, in a copy of the package."""

import os
from hashlib import sha256
from pathlib import Path

import pytest

from tests.mutants.patches import BREAKAGES, Mutant, read
from tests.support.changed_package import CHECKOUT, ChangedPackage

SAMPLE = int(os.environ.get("MODEL_BREAKAGES", "12"))  # a different sample each day, see the Makefile
DAY = os.environ.get("DAY", "")

PROGRAM = f"""
import sys
from pathlib import Path

import payment_sandbox

assert Path(payment_sandbox.__file__).parent == Path("payment_sandbox").resolve(), "this is not the copy"
sys.path.append({str(CHECKOUT)!r})

from payment_sandbox.testing.servers import PaymentSandboxServer
from tests.model.exploring import START_STATES, explore_from, explore_method
from tests.model.walking import METHOD_OR_PAGE

server = PaymentSandboxServer()
try:
    if WHERE in METHOD_OR_PAGE:
        explore_method(server, WHERE, "live", 2, 60)
    for length, most in ((1, 100), (2, 300)):
        for name in sorted(START_STATES, key=lambda name: name != WHERE):
            explore_from(server, name, length, most)
    print("no disagreement")
except AssertionError as disagreement:
    print(f"noticed: {{disagreement}}")
finally:
    server.stop()
"""


def daily_sample() -> list[Mutant]:
    """Return a sample of the breakages, a different one each day."""
    return sorted(read(BREAKAGES), key=lambda each: sha256(f"{DAY}/{each.sentence}".encode()).digest())[
        :SAMPLE
    ]


@pytest.mark.prove
@pytest.mark.parametrize("breakage", daily_sample(), ids=lambda each: f"{each.rule}: {each.sentence}")
def test_a_broken_server_is_noticed(breakage: Mutant, tmp_path: Path) -> None:
    """A response or a later read disagrees with the model."""
    package = ChangedPackage(tmp_path)
    breakage.apply(package.root)
    output = package.run(f"WHERE = {breakage.start!r}\n{PROGRAM}")
    assert output.startswith("noticed: "), output
