"""Switches for common faults, and the choice of a scenario."""

from collections.abc import Sequence
from functools import partial
from typing import Final, NamedTuple

from flask import Response

from payment_sandbox.methods import ALL_METHODS
from payment_sandbox.methods.common import PAGE_KEYS
from payment_sandbox.operations.choose_scenario import choose_scenario
from payment_sandbox.orders.refusals import Invalid, Unknown, Violation
from payment_sandbox.projects.default_scenario import default_scenario
from payment_sandbox.projects.faults import Faults
from payment_sandbox.projects.project import Project
from payment_sandbox.scenarios.documents import Document, parse_yaml
from payment_sandbox.scenarios.sentences import rule_in_words
from payment_sandbox.scenarios.variation import OfferedIn, VariationOffer
from payment_sandbox.scenarios.variations import offers_in
from payment_sandbox.web.answers.overview import scenario_record
from payment_sandbox.web.browsers import redirect
from payment_sandbox.web.call import Call
from payment_sandbox.web.dashboard.frame import FORM_FACTS, VIEW_FACTS, dashboard, enter, form_page, show, url
from payment_sandbox.web.routes import route

BAD_REQUEST: Final = 400
METHODS_WITH_PAGE: Final = frozenset(
    method.name for method in ALL_METHODS if any(keys >= PAGE_KEYS for keys in method.capabilities.outcomes)
)
"""The payment methods with a customer page."""


class FaultSwitch(NamedTuple):
    """A fault switch and its state."""

    offer: VariationOffer
    is_on: bool


def switches(project: Project) -> list[FaultSwitch]:
    """Return all switches with their current state."""
    faults = project.epoch.state.faults
    return [FaultSwitch(offer, _is_on(offer, faults)) for offer in offers_in(OfferedIn.SWITCH).values()]


def _is_on(offer: VariationOffer, faults: Faults) -> bool:
    """Whether the rule of a switch is set and not spent; some rules apply to a single call."""
    ((kind, (rule,)),) = offer.rules.items()
    known = faults.document.get(kind, [])
    return rule in known and (kind == "webhooks" or not faults.is_spent(known.index(rule)))


def _toggle(offer: VariationOffer, before: Faults) -> Faults:
    """Toggle the rule of a switch; other rules remain, with their uses."""
    ((kind, rules),) = offer.rules.items()
    others = [rule for rule in before.document.get(kind, ()) if rule not in rules]
    # the first matching rule applies
    return before.with_rules(kind, others if _is_on(offer, before) else [*rules, *others], rules)


@route(dashboard, "POST", "/dashboard/<project_id>/faults/", **FORM_FACTS)
def post_switch(call: Call, project_id: str) -> Response:
    """Switch a common fault on or off, or remove all faults."""
    project = enter(call, project_id)
    name = call.request.form.get("switch")
    if name == "none":
        project.put_faults({})
    else:
        offer = offers_in(OfferedIn.SWITCH).get(name or "")
        if offer is None:
            raise Unknown(f"there is no switch {name!r}")
        project.change_faults(partial(_toggle, offer))
    return redirect(form_page(call) or url(project, "scenario/"))


@route(dashboard, "GET", "/dashboard/<project_id>/scenario/", **VIEW_FACTS)
def get_scenario_view(call: Call, project_id: str) -> Response:
    """Show the active scenario with its rules, the other scenarios, and the faults."""
    return _scenario_page(call, enter(call, project_id))


@route(dashboard, "POST", "/dashboard/<project_id>/scenario/", **FORM_FACTS)
def post_scenario(call: Call, project_id: str) -> Response:
    """Activate a scenario by name or from YAML."""
    project = enter(call, project_id)
    text = call.request.form.get("yaml", "")
    try:
        if text.strip():
            document = parse_yaml(text)
            choose_scenario(project, document, call.site.registry.catalogue)
        elif call.request.form.get("name") == default_scenario().name:
            project.activate(default_scenario())
        else:
            chosen = {"name": call.request.form.get("name", "")}
            choose_scenario(project, Document(chosen), call.site.registry.catalogue)
    except Invalid as invalid:
        return _scenario_page(call, project, text, invalid.violations)
    return redirect(url(project, "scenario/"))


def _scenario_page(call: Call, project: Project, text: str = "", wrong: Sequence[Violation] = ()) -> Response:
    text, violations = project.masking.mask_text(text), [project.masking.mask_record(each) for each in wrong]
    active = project.epoch.state.scenario
    known = {
        scenario.name: scenario
        for scenario in (default_scenario(), *call.site.registry.catalogue.scenarios.values())
    }
    others = list(known.values())
    lines = text.replace("\r\n", "\n").split("\n") if violations else []
    return show(
        call,
        "scenario",
        project,
        "scenario",
        BAD_REQUEST if violations else 200,
        active=scenario_record(project, active),
        scenarios=others,
        switches=switches(project),
        text=text,
        in_words=partial(rule_in_words, online=METHODS_WITH_PAGE),
        lines=lines,
        violations=violations,
        wrong_lines={violation.line for violation in violations if violation.line is not None},
    )
