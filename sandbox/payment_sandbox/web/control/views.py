"""One project under control: settings, time, actions, and what happened."""

from typing import Any

from flask import Blueprint, Response, request

from payment_sandbox.fidelity.ledger import assumptions, rules
from payment_sandbox.forms import read
from payment_sandbox.operations import clock as clocks
from payment_sandbox.operations.act import act
from payment_sandbox.operations.advance import Limits, agenda
from payment_sandbox.operations.bank_qr import scan
from payment_sandbox.operations.choose_scenario import choose_scenario, file_schema
from payment_sandbox.operations.clock import catch_up
from payment_sandbox.operations.redeliver import redeliver
from payment_sandbox.orders.actions import Action
from payment_sandbox.scenarios.default import default_scenario
from payment_sandbox.storage import snapshot
from payment_sandbox.web.after import hold_webhooks, release_webhooks
from payment_sandbox.web.answers.bodies import json_answer, list_answer
from payment_sandbox.web.answers.control import (
    advance_record,
    clock_record,
    delivery_record,
    project_record,
    stopped_record,
)
from payment_sandbox.web.answers.orders import order_answer
from payment_sandbox.web.auth import project, registry, require_project
from payment_sandbox.web.bodies import document_body, json_body
from payment_sandbox.web.control import listing
from payment_sandbox.web.control.forms import ActForm, AdvanceForm, ClockForm, ScanForm
from payment_sandbox.web.control.strict import refuse_unknown
from payment_sandbox.web.guard import refuse_strangers

ACT = ActForm()
SCAN = ScanForm()
CLOCK = ClockForm()
ADVANCE = AdvanceForm()
STATE_BYTES_MAX = 256 << 20

control = Blueprint("control", __name__, url_prefix="/control")
control.before_request(refuse_strangers)
control.before_request(require_project)
control.before_request(refuse_unknown)
control.after_request(release_webhooks)


@control.get("/project/")
def get_project() -> Response:
    """Show the project."""
    return json_answer(project_record(project()))


@control.patch("/project/")
def patch_project() -> Response:
    """Change some settings (CTL-01, CTL-07)."""
    project().change_settings(json_body())
    return json_answer(project_record(project()))


@control.delete("/project/")
def delete_project() -> Response:
    """Delete the project; its key is refused from now on."""
    registry().delete(project())
    return json_answer({"deleted": project().project_id})


@control.post("/reset/")
def post_reset() -> Response:
    """Be as at the start (CTL-09)."""
    project().reset()
    return json_answer(project_record(project()))


@control.get("/state/")
def get_state() -> Response:
    """Take a snapshot of the whole project (CTL-10)."""
    return json_answer(snapshot.take(project()))


@control.put("/state/")
def put_state() -> Response:
    """Go on from a snapshot, of this project or of another one's (CTL-10, CTL-11)."""
    snapshot.restore(project(), json_body(bytes_max=STATE_BYTES_MAX))
    return json_answer(project_record(project()))


@control.get("/clock/")
def get_clock() -> Response:
    """Read the clock."""
    return json_answer(clock_record(project()))


@control.patch("/clock/")
def patch_clock() -> Response:
    """Freeze it, let it run at a rate, or put it forward (CTL-12)."""
    done = clocks.change_clock(project(), **read(CLOCK, json_body()))
    return json_answer({**clock_record(project()), **stopped_record(done)})


@control.post("/clock/advance/")
def post_advance() -> Response:
    """Advance it, event by event (CTL-13)."""
    aim = read(ADVANCE, json_body())
    asked = {"events_max": aim.pop("max_events", None), "timeout_seconds": aim.pop("timeout", None)}
    limits = Limits(**{name: limit for name, limit in asked.items() if limit is not None})
    return json_answer(advance_record(clocks.advance_clock(project(), aim, limits)))


@control.get("/agenda/")
def get_agenda() -> Response:
    """Show what is due (CTL-17)."""
    return list_answer(agenda(project().epoch))


@control.get("/scenario/")
def get_scenario() -> Response:
    """Show the active scenario."""
    return json_answer(project().epoch.state.scenario.document)


@control.put("/scenario/")
def put_scenario() -> Response:
    """Switch to a known scenario or to the one that is sent (CTL-19)."""
    choose_scenario(project(), document_body(), registry().catalogue)
    return json_answer(project().epoch.state.scenario.document)


@control.get("/scenarios/")
def get_scenarios() -> Response:
    """List the scenarios that are there by name (CTL-18)."""
    known = registry().catalogue.scenarios.values()
    return list_answer([{"name": found.name, "description": found.description} for found in known])


@control.get("/scenarios/schema/")
def get_scenario_schema() -> Response:
    """Describe scenario files, as JSON Schema for editors."""
    return json_answer(file_schema())


@control.get("/faults/")
def get_faults() -> Response:
    """Show the faults that were put beside the scenario."""
    return json_answer(project().epoch.state.faults.document)


@control.put("/faults/")
def put_faults() -> Response:
    """Let requests and webhooks go wrong, besides what the scenario says (CTL-23, CTL-24)."""
    project().put_faults(json_body())
    return json_answer(project().epoch.state.faults.document)


@control.delete("/faults/")
def delete_faults() -> Response:
    """Let nothing go wrong but what the scenario says."""
    project().put_faults({})
    return json_answer(project().epoch.state.faults.document)


@control.delete("/scenario/")
def delete_scenario() -> Response:
    """Go back to the default."""
    project().activate(default_scenario())
    return json_answer(project().epoch.state.scenario.document)


@control.post("/orders/<order_id>/act/")
def post_act(order_id: str) -> Response:
    """Let somebody act on an order (CTL-20)."""
    data = read(ACT, json_body())
    catch_up(project())
    hold_webhooks()
    action = Action(amount_cents=data.pop("amount", None), **data)
    return order_answer(project(), act(project(), order_id, action))


@control.post("/bankqr/<qr_id>/scan/")
def post_scan(qr_id: str) -> Response:
    """Let a payer scan a QR code."""
    data = read(SCAN, json_body(empty_is={}))
    catch_up(project())
    hold_webhooks()
    order = scan(project(), qr_id, data.get("amount"), data.get("issuer_id"))
    return order_answer(project(), order, 201)


@control.get("/webhooks/")
def get_webhooks() -> Response:
    """List webhooks with their attempts (CTL-21)."""
    order_id, state = request.args.get("order_id"), request.args.get("state")
    return list_answer(*listing.webhooks(project(), order_id, state))


@control.post("/webhooks/<delivery_id>/redeliver/")
def post_redelivery(delivery_id: str) -> Response:
    """Try a webhook once more, now (CTL-22)."""
    return json_answer(delivery_record(redeliver(project(), delivery_id)))


@control.get("/journal/")
def get_journal() -> Response:
    """List the requests of the merchant API."""
    items, dropped = listing.journal(project(), request.args)
    if request.args.get("count"):
        return json_answer({"count": len(items)})
    order_id = request.args.get("order_id")
    return list_answer(
        items,
        dropped,
        returns=listing.returns(project(), order_id),
        statuses=listing.statuses(project(), order_id),
        failures=listing.failures(project(), order_id),
    )


@control.get("/fidelity/")
def get_fidelity() -> Response:
    """List every rule with what proves it, and every assumption (SET-70)."""
    shown: list[dict[str, Any]] = [rule._asdict() for rule in rules()]
    return list_answer(shown, assumptions=[assumption._asdict() for assumption in assumptions()])
