"""The switches of the page Simulate."""

import pytest

from payment_sandbox import PaymentSandbox
from payment_sandbox.ui.dashboard.simulate import SWITCHES, Switch, switches
from tests.support.in_process import project_of


@pytest.mark.parametrize("switch", SWITCHES, ids=lambda switch: switch.name)
def test_every_switch_has_a_rule(payment_sandbox: PaymentSandbox, switch: Switch) -> None:
    """The rule of a switch turns on this switch and no other."""
    payment_sandbox.client.faults(**{switch.kind: [switch.rule]})
    shown = {each.name: is_on for each, is_on in switches(project_of(payment_sandbox))}
    assert shown == {name: name == switch.name for name in shown}
