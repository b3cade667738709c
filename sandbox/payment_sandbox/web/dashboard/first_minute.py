"""The first minute of a project: three steps that tick themselves off, and a line of code to begin with."""

from datetime import timedelta
from typing import Final, NamedTuple

from payment_sandbox.orders.webhooks import DeliveryState
from payment_sandbox.projects.project import Project

BODY: Final = '{"currency": "EUR", "amount": 1295, "description": "Socks"}'
CALLS: Final = {
    "curl": "curl -u \"$SANDBOX_API_KEY:\" {url} -H 'Content-Type: application/json' -d '{body}'",
    "Python": 'requests.post("{url}", auth=(os.environ["SANDBOX_API_KEY"], ""), json={body})',
    "Node": (
        'await fetch("{url}", {{method: "POST", body: JSON.stringify({body}), headers: '
        '{{"Content-Type": "application/json", '
        'Authorization: "Basic " + btoa(process.env.SANDBOX_API_KEY + ":")}}}})'
    ),
    "PHP": (
        "file_get_contents('{url}', false, stream_context_create(['http' => ['method' => 'POST', "
        "'content' => '{body}', 'header' => ['Content-Type: application/json', "
        "'Authorization: Basic ' . base64_encode(getenv('SANDBOX_API_KEY') . ':')]]]));"
    ),
    "Ruby": (
        "Net::HTTP.post(URI('{url}'), '{body}', 'Content-Type' => 'application/json', "
        "'Authorization' => 'Basic ' + [\"#{{ENV['SANDBOX_API_KEY']}}:\"].pack('m0'))"
    ),
}


class FirstStep(NamedTuple):
    """Something to do first, and whether it is done."""

    label: str
    is_done: bool


def first_steps(project: Project) -> list[FirstStep]:
    """The three steps; none once all are done."""
    store = project.epoch.store
    is_answered = any(delivery.state == DeliveryState.DELIVERED for delivery in store.deliveries())
    steps = [
        FirstStep("Make a first order", bool(project.epoch.orders_created)),
        FirstStep("Answer its first webhook", is_answered),
        FirstStep("Move the clock", _has_moved(project)),
    ]
    return [] if all(step.is_done for step in steps) else steps


def first_calls(server_url: str) -> dict[str, str]:
    """How a shop makes its first order, by language."""
    return {name: call.format(url=f"{server_url}/v1/orders/", body=BODY) for name, call in CALLS.items()}


def _has_moved(project: Project) -> bool:
    """Whether the clock is not where it began."""
    start = project.identity.start.at
    if start is not None and not project.epoch.state.clock.running:
        return project.now() != start
    return abs(project.now() - project.services.real.wall_now()) > timedelta(minutes=1)
