"""Scenarios and faults, which decide what happens."""

from typing import Annotated, Final

from payment_sandbox.operations import choose_scenario
from payment_sandbox.orders.refusals import Unknown
from payment_sandbox.projects.default_scenario import default_scenario
from payment_sandbox.projects.project import Project
from payment_sandbox.scenarios.scenario_forms import FaultsForm, ScenarioForm
from payment_sandbox.web.answers import records
from payment_sandbox.web.answers.overview import scenario_record, scenario_with_matches
from payment_sandbox.web.bodies import document_body
from payment_sandbox.web.call import Call
from payment_sandbox.web.control.declaring import Body, Document, Listed, command

SCENARIO_EXAMPLE: Final = {
    "name": "second-try-works",
    "rules": [
        {
            "when": {"payment_method": "credit-card", "attempt": 1},
            "then": {"customer": "fails", "after": "PT20S"},
        },
        {"when": {"payment_method": "credit-card"}, "then": {"customer": "pays", "after": "PT1M"}},
    ],
}
FAULTS_EXAMPLE: Final = {
    "faults": [{"when": {"method": "POST", "path": "/v1/orders/", "nth": 2}, "then": {"status": 503}}],
    "webhooks": [{"when": {"attempt": 1}, "then": {"answer": 503}}],
}


@command("control", "GET", "/scenario/", answers=ScenarioForm)
def active_scenario(project: Project) -> records.Scenario:
    """Get the active scenario; each rule says how often it has matched."""
    return scenario_with_matches(project.epoch.state)


@command("control", "PUT", "/scenario/", answers=ScenarioForm, example=SCENARIO_EXAMPLE)
def put_scenario(
    call: Call, document: Annotated[Document, Body(ScenarioForm, document_body)]
) -> records.Scenario:
    """Activate a scenario, by name or from the body (CTL-19)."""
    choose_scenario.choose_scenario(call.project, document, call.site.registry.catalogue)
    return dict(call.project.epoch.state.scenario.document)


@command("control", "DELETE", "/scenario/", answers=ScenarioForm)
def reset_scenario(project: Project) -> records.Scenario:
    """Restore the default scenario."""
    project.activate(default_scenario())
    return dict(project.epoch.state.scenario.document)


@command("control", "GET", "/scenarios/")
def scenarios(call: Call) -> Listed[records.ScenarioSummary]:
    """List the available scenarios (CTL-18)."""
    known = call.site.registry.catalogue.scenarios.values()
    return Listed([{"name": scenario.name, "description": scenario.description} for scenario in known])


@command("control", "GET", "/scenarios/<name>/")
def scenario_detail(call: Call, name: str) -> records.ScenarioDetail:
    """Get a scenario with its rules, and their uses if it is active."""
    known = call.site.registry.catalogue.scenarios
    own = {each.name: each for each in (default_scenario(), call.project.epoch.state.scenario)}
    if name not in own and name not in known:
        raise Unknown(f"there is no scenario {name!r}", list(known))
    return scenario_record(call.project, own.get(name) or known[name])


@command("control", "GET", "/scenarios/schema/", answers=records.JsonSchemaShape)
def scenario_schema(project: Project) -> records.JsonSchema:
    """Get the JSON Schema of scenario files, for editors."""
    return choose_scenario.file_schema()


@command("control", "GET", "/faults/", answers=FaultsForm)
def active_faults(project: Project) -> records.Faults:
    """Get the faults in addition to the scenario's; each says how often it has matched."""
    faults = project.epoch.state.faults
    return faults.with_matches(faults.document)


@command("control", "PUT", "/faults/", answers=FaultsForm, example=FAULTS_EXAMPLE)
def put_faults(project: Project, document: Annotated[Document, Body(FaultsForm)]) -> records.Faults:
    """Set faults for requests and webhooks, in addition to the scenario's (CTL-23, CTL-24)."""
    project.put_faults(document)
    return dict(project.epoch.state.faults.document)


@command("control", "DELETE", "/faults/", answers=FaultsForm)
def reset_faults(project: Project) -> records.Faults:
    """Remove all faults except the scenario's."""
    project.put_faults({})
    return dict(project.epoch.state.faults.document)
