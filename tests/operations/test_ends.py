"""Each case of the coverage page can be covered from the dashboard."""

import pytest

from payment_sandbox.methods import METHOD_NAMES
from payment_sandbox.operations.coverage import coverage
from payment_sandbox.operations.outcomes import playable_outcomes
from payment_sandbox.serving.server import Server
from tests.support.dashboard import Dashboard
from tests.support.driver import Sandbox


@pytest.mark.parametrize("mode", ["test", "live"])
@pytest.mark.parametrize("method", METHOD_NAMES)
def test_one_click_covers_each_case(server: Server, method: str, mode: str) -> None:
    """One click covers each case, with every method, in both modes."""
    sandbox = Sandbox(server, mode=mode, payment_methods=[method])
    project = server.registry.find(sandbox.key)
    assert project is not None
    ends = playable_outcomes(project, method)
    assert ends or mode == "test"
    browser = Dashboard(sandbox)
    for end in ends:
        page = browser.open("mistakes/")
        if f"case={method} {end}" not in [
            f"{name}={value}" for form in page.forms for name, value in form.buttons
        ]:
            cell = coverage(project, ()).methods[0].cells[end]
            assert cell.right or cell.by_hand, "an earlier case already covered it"
            continue
        shown = browser.press(page, f"case={method} {end}")
        assert "Played" in shown.ids["notice"]
        cell = coverage(project, ()).methods[0].cells[end]
        assert (cell.right, bool(cell.by_hand)) == ([], True), end
        assert f"{end} " in browser.open("mistakes/").text
        assert "played by hand, " in browser.open("mistakes/").ids["by-hand"]


def test_impossible_cases_are_not_offered(sandbox: Sandbox) -> None:
    """An impossible case has no button, and a form that requests it is refused."""
    browser = Dashboard(sandbox)
    sandbox.patch("/control/project/", {"payment_methods": ["bank-transfer"]})
    page = browser.open("mistakes/")
    form, _ = browser.button(page, "case=bank-transfer expired")
    assert "case=bank-transfer paid" not in [f"{name}={value}" for name, value in form.buttons]
    for case in ("bank-transfer paid", "nothing", "credit-card nothing"):
        assert "cannot be played" in browser.send(form, {"case": case}, page).ids["notice"]
