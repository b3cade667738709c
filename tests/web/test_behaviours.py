"""Each effect on requests needs a behaviour; without one, the sandbox does not start."""

import subprocess
import sys

import pytest

DECLARED = """
from payment_sandbox.scenarios.effects import RequestEffect
class Mangle(RequestEffect):
    key = "mangle"
"""
INCOMPLETE = """
from payment_sandbox.web.merchant.fault_effects import Behaviour, require_behaviours
class Mangling(Behaviour[Mangle], effect=Mangle):
    def before(self):
        return None
"""
COMPLETE = """
    def after(self, response, fault):
        return response
"""


@pytest.mark.parametrize(
    ("rest", "problem"), [("", "Mangling must define for Mangle: after"), (COMPLETE, "")]
)
def test_an_incomplete_behaviour_does_not_start(rest: str, problem: str) -> None:
    """An effect with an incomplete behaviour prevents startup; test_new_fault tries one without any."""
    source = f"from payment_sandbox.web.merchant import fault_effects\n{DECLARED}{INCOMPLETE}{rest}require_behaviours()"
    result = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=False)
    assert (result.returncode == 0) == (not problem), result.stderr
    assert problem in result.stderr
