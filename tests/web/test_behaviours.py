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
from payment_sandbox.web.merchant.faults import Behaviour, require_behaviours
class Mangling(Behaviour[Mangle], effect=Mangle):
    def before(self):
        return None
"""
COMPLETE = """
    def after(self, response, fault):
        return response
"""
SERVE = "\nimport payment_sandbox.web.app\n"


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        (DECLARED + SERVE, "no behaviour is defined for Mangle"),
        (
            "from payment_sandbox.web.merchant import faults\n"
            + DECLARED
            + INCOMPLETE
            + "require_behaviours()",
            "Mangling must define for Mangle: after",
        ),
        (
            "from payment_sandbox.web.merchant import faults\n"
            + DECLARED
            + INCOMPLETE
            + COMPLETE
            + "require_behaviours()",
            "",
        ),
    ],
)
def test_an_effect_without_a_behaviour_does_not_start(source: str, problem: str) -> None:
    """An effect without a behaviour, or with an incomplete one, prevents startup."""
    result = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=False)
    assert (result.returncode == 0) == (not problem), result.stderr
    assert problem in result.stderr
