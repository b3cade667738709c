"""The switches for common faults, and the choice of a scenario."""

from collections.abc import Sequence
from functools import partial
from typing import Final, NamedTuple

from flask import Response

from payment_sandbox.methods import ALL
from payment_sandbox.methods.common import PAGE_KEYS
from payment_sandbox.operations.choose_scenario import choose_scenario
from payment_sandbox.orders.refusals import Invalid, Unknown, Violation
from payment_sandbox.projects.default_scenario import default_scenario
from payment_sandbox.projects.faults import Faults
from payment_sandbox.projects.project import Project
from payment_sandbox.scenarios.documents import Document, parse_yaml
from payment_sandbox.scenarios.sentences import rule_in_words
from payment_sandbox.scenarios.variation import OfferedIn, VariationOffer
from payment_sandbox.scenarios.variations import offered
from payment_sandbox.web.answers.overview import scenario_record
from payment_sandbox.web.browsers import redirect
from payment_sandbox.web.call import Call
from payment_sandbox.web.dashboard.frame import POSTED, VIEW, dashboard, enter, show, url, way_back
from payment_sandbox.web.routes import route

BAD_REQUEST: Final = 400
ONLINE: Final = frozenset(
    method.name for method in ALL if any(keys >= PAGE_KEYS for keys in method.capabilities.outcomes)
)
"""The methods whose customers act on a page."""


class Switch(NamedTuple):
    """A variation that is switched on and off, and whether it is on."""

    offer: VariationOffer
    is_on: bool


def switches(project: Project) -> list[Switch]:
    """All switches, as they stand."""
    faults = project.epoch.state.faults
    return [Switch(offer, _is_on(offer, faults)) for offer in offered(OfferedIn.SWITCH).values()]


def _is_on(offer: VariationOffer, faults: Faults) -> bool:
    """Whether its rule is set and can still apply: one for the next call only is used up by it."""
    ((kind, (rule,)),) = offer.rules.items()
    known = faults.document.get(kind, [])
    return rule in known and (kind == "webhooks" or not faults.is_spent(known.index(rule)))


def _switched(offer: VariationOffer, before: Faults) -> Faults:
    """The faults with a switch pressed; rules set otherwise stay, with their uses."""
    ((kind, rules),) = offer.rules.items()
    others = [rule for rule in before.document.get(kind, ()) if rule not in rules]
    # the first rule that matches decides
    return before.with_rules(kind, others if _is_on(offer, before) else [*rules, *others], rules)


@route(dashboard, "POST", "/dashboard/<project_id>/faults/", **POSTED)
def post_switch(call: Call, project_id: str) -> Response:
    """Switch a common fault on or off, or remove all faults."""
    project = enter(call, project_id)
    name = call.request.form.get("switch")
    if name == "none":
        project.put_faults({})
    else:
        offer = offered(OfferedIn.SWITCH).get(name or "")
        if offer is None:
            raise Unknown(f"there is no switch {name!r}")
        project.change_faults(partial(_switched, offer))
    return redirect(way_back(call) or url(project, "scenario/"))


@route(dashboard, "GET", "/dashboard/<project_id>/scenario/", **VIEW)
def get_scenario_view(call: Call, project_id: str) -> Response:
    """Show the active scenario with its rules, the others, and the faults."""
    return _shown(call, enter(call, project_id))


@route(dashboard, "POST", "/dashboard/<project_id>/scenario/", **POSTED)
def post_scenario(call: Call, project_id: str) -> Response:
    """Activate a scenario by its name, or one that was pasted as YAML."""
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
        return _shown(call, project, text, invalid.violations)
    return redirect(url(project, "scenario/"))


def _shown(call: Call, project: Project, text: str = "", wrong: Sequence[Violation] = ()) -> Response:
    text, violations = project.masking.text(text), [project.masking.record(each) for each in wrong]
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
        in_words=partial(rule_in_words, online=ONLINE),
        lines=lines,
        violations=violations,
        wrong_lines={violation.line for violation in violations if violation.line is not None},
    )
