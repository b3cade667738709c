"""A new fault needs a class, a line in the list and a behaviour; an invented one works everywhere."""

from pathlib import Path

import pytest

from tests.support.changed_package import WRITE_SCHEMA, ChangedCheckout

EFFECTS = '''class Empty(RequestEffect):
    """The response has no body."""

    key = "empty"
    field = Yes(about="Answers without a body.")
    example = "true"
    client_sees = "a response without a body"
    has_phase = True
    loses_response = True


class Refuse(WebhookEffect):
    """It counts as refused."""

    key = "refuse"
    field = Yes(about="Counts as refused by the merchant, who is not called.")

    @property
    def reply(self) -> Reply:
        """Forbidden."""
        return Reply(0.0, status=403, warning=ANSWERED_BY_SCENARIO)


'''
BEHAVIOUR = '''class AnswerNothing(ReplaceResponse[Empty], effect=Empty):
    """Answers without a body."""

    def replacement(self, call: Call, lost_status: int | None) -> Response:
        """Return the empty response."""
        return Response(status=200)


'''
LISTS = (
    "REQUEST_EFFECTS: Final[Sequence[type[RequestEffect]]] = (",
    "WEBHOOK_EFFECTS: Final[Sequence[type[WebhookEffect]]] = (",
)
START = """
import requests
from payment_sandbox.serving.config import ServerConfig
from payment_sandbox.serving.server import build
from tests.documentation.parts import PARTS
"""
PROGRAM = f"""{START}
with build(ServerConfig(clock="frozen@2027-01-01T00:00:00Z", webhook_url="http://127.0.0.1:9/")) as server:
    def call(method, path, body=None):
        auth = ("sandbox-key", "")
        return requests.request(
            method, f"{{server.url}}{{path}}", json=body, auth=auth, timeout=60
        )

    def set_faults(**document):
        answer = call("PUT", "/control/faults/", document)
        assert answer.status_code == 200, answer.text

    order = {{"currency": "EUR", "amount": 5, "transactions": [{{"payment_method": "bank-transfer"}}]}}

    # the effect on a request, and on a webhook
    set_faults(faults=[{{"when": {{"method": "POST", "nth": 1}}, "then": {{"empty": True, "phase": "after"}}}}],
               webhooks=[{{"then": {{"refuse": True}}}}])
    answered = call("POST", "/v1/orders/", order)
    assert (answered.status_code, answered.content) == (200, b""), answered.text
    assert len(call("GET", "/control/orders/").json()["items"]) == 1
    (webhook,) = call("GET", "/control/webhooks/").json()["items"]
    assert webhook["attempts"][0]["response"]["status"] == 403, webhook

    # forms and their messages
    wrong = call("PUT", "/control/faults/", {{"faults": [{{"then": {{"empty": 5}}}}]}}).json()["error"]
    assert wrong["violations"][0]["path"].endswith("then.empty"), wrong

    # snapshots
    state = call("GET", "/control/state/").json()
    assert call("PUT", "/control/state/", state).status_code == 200
    assert call("GET", "/control/faults/").json()["faults"][0]["then"]["empty"] is True

    # description, schema and documentation
    described = call("GET", "/openapi.json").json()["components"]["schemas"]
    for name, about in (("empty", "Answers without a body"), ("refuse", "Counts as refused")):
        found = [each["properties"][name] for each in described.values() if name in each.get("properties", {{}})]
        assert found and all(about in each["description"] for each in found), name
        assert about in call("GET", "/control/scenarios/schema/").text
    assert "a response without a body" in PARTS["effects"]()
print("there")
"""
TESTS = (
    "tests/scenarios/test_schema.py::test_the_schema_file_is_current",
    "tests/cli/test_examples.py::test_the_help_of_faults_names_every_effect",
)
NO_SCHEMA = "test_schema.py::test_the_schema_file_is_current"
NO_HELP = "test_examples.py::test_the_help_of_faults_names_every_effect"


@pytest.fixture
def checkout(tmp_path: Path) -> ChangedCheckout:
    """A checkout with two new effects, each in its list."""
    changed = ChangedCheckout(tmp_path)
    effects = "scenarios/effects.py"
    changed.package.insert(effects, LISTS[0], EFFECTS)
    for start, name in zip(LISTS, ("Empty", "Refuse"), strict=True):
        changed.package.replace(effects, start, f"{start}{name}, ")
    return changed


def test_a_fault_without_a_behaviour_does_not_start(checkout: ChangedCheckout) -> None:
    """An effect without a behaviour fails at import, with the name of the effect."""
    output = checkout.run("import payment_sandbox.serving.app")
    assert "TypeError: no behaviour is defined for Empty" in output


@pytest.mark.prove
def test_a_new_fault_works_everywhere(checkout: ChangedCheckout) -> None:
    """A new fault applies, is validated, saved and documented; a missing schema or help text fails a test."""
    faults = "web/merchant/fault_effects.py"
    checkout.package.replace(faults, "    ErrorStatus,\n", "    Empty,\n    ErrorStatus,\n")
    checkout.package.insert(faults, "class CutAfterDelay", BEHAVIOUR)
    assert checkout.run(PROGRAM) == "there\n"
    assert checkout.failing(*TESTS) == {NO_SCHEMA, NO_HELP}
    assert checkout.run(WRITE_SCHEMA) == ""
    assert checkout.failing(*TESTS) == {NO_HELP}
    checkout.package.replace(
        "cli/remote/project_commands.py", "delay and swap.", "delay, swap, empty and refuse."
    )
    assert checkout.failing(*TESTS) == set()
