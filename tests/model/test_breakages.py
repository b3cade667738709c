"""The model notices subtle changes to the engine, in a copy of the package."""

from pathlib import Path

import pytest

from tests.mutants.patches import BREAKAGES, Mutant, read
from tests.support.changed_package import CHECKOUT, ChangedPackage
from tests.support.samples import of_the_day

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


@pytest.mark.prove
@pytest.mark.parametrize(
    "breakage", of_the_day(read(BREAKAGES), 6), ids=lambda each: f"{each.rule}: {each.sentence}"
)
def test_a_broken_server_is_noticed(breakage: Mutant, tmp_path: Path) -> None:
    """A response or a later read disagrees with the model."""
    package = ChangedPackage(tmp_path)
    breakage.apply(package.root)
    output = package.run(f"WHERE = {breakage.start!r}\n{PROGRAM}")
    assert output.startswith("noticed: "), output
