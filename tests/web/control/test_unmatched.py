"""A test is told of faults and rules that never matched, with what came nearest."""

from typing import Any

import pytest

from payment_sandbox import PaymentReviewWarning
from payment_sandbox.testing.reviews import ERROR, WARN, review
from payment_sandbox.testing.servers import PaymentSandboxServer
from tests.support.driver import Sandbox, card

FAULT = {"when": {"method": "POST", "path": "/v1/order/"}, "then": {"status": 503}}
SECOND = {"when": {"method": "POST", "path": "/v1/orders/", "nth": 2}, "then": {"status": 503}}
RETRY = {"when": {"status": "completed", "attempt": 2}, "then": {"answer": 503}}
RARE = {"when": {"amount": 500}, "then": {"customer": "pays"}}
MATCHING = {"when": {"amount": 1295}, "then": {"customer": "waits"}}


def unmatched(sandbox: Sandbox) -> list[str]:
    """Return the sentences of the review."""
    answer = sandbox.get("/control/review/").json()
    assert all(sentence in answer["text"] for sentence in answer["unmatched"])
    sentences: list[str] = answer["unmatched"]
    return sentences


def test_unmatched_faults_name_what_came_nearest(sandbox: Sandbox) -> None:
    """The sentence names the fault and the request that differs least; removed faults are told, too."""
    sandbox.put("/control/faults/", {"faults": [FAULT]})
    assert unmatched(sandbox) == ["the fault for POST, /v1/order/ never matched; there were no requests"]
    sandbox.read(sandbox.place(card()))
    differs = "the fault for POST, /v1/order/ never matched; POST /v1/orders/ differs in the path"
    assert unmatched(sandbox) == [differs]
    sandbox.put("/control/faults/", {"faults": [SECOND]})
    assert len(unmatched(sandbox)) == 2
    sandbox.delete("/control/faults/")
    assert unmatched(sandbox)[0] == differs
    sandbox.put("/control/scenario/", {"name": "mine", "rules": [RARE, MATCHING]})
    before = unmatched(sandbox)
    assert len(before) == 4
    sandbox.put("/control/state/", sandbox.get("/control/state/").json())
    assert unmatched(sandbox) == before, "after a restore"
    sandbox.post("/control/reset/")
    assert unmatched(sandbox) == before, "after a reset"


def test_a_fault_for_the_second_call_needs_two(sandbox: Sandbox) -> None:
    """One matching call is not enough; GET counts the matches, and PUT ignores the counts."""
    sandbox.put("/control/faults/", {"faults": [SECOND]})
    sandbox.place(card())
    counted = sandbox.get("/control/faults/").json()
    assert counted["faults"] == [{**SECOND, "matches": 1}]
    assert unmatched(sandbox) == [
        "the fault for POST, /v1/orders/, call number 2 never applied: 1 matched, of 2 needed"
    ]
    assert sandbox.post("/v1/orders/", {}).status_code == 503
    assert unmatched(sandbox) == []
    assert sandbox.put("/control/faults/", counted).json() == {"faults": [SECOND], "webhooks": []}
    assert sandbox.get("/control/faults/").json()["faults"] == [{**SECOND, "matches": 0}]


def test_a_webhook_rule_for_a_retry_needs_a_retry(watched: Sandbox) -> None:
    """A webhook that the shop accepts at once has no second attempt."""
    first = {"when": {"attempt": 1}, "then": {"duplicate": 2}}
    watched.put("/control/faults/", {"webhooks": [RETRY, first]})
    watched.pay(watched.place(card()))
    watched.settle()
    retry, counted = watched.get("/control/faults/").json()["webhooks"]
    assert (retry["matches"], counted["matches"] > 0) == (0, True)
    assert unmatched(watched) == [
        "the webhook rule for status completed, attempt number 2 never matched; "
        "the webhook completed with 2 attempts differs in the number of attempts"
    ]


def test_an_inline_scenario_is_told_rule_by_rule(sandbox: Sandbox) -> None:
    """A scenario of the test counts each rule, a scenario by name counts as a whole, and the default not at all."""
    sandbox.place(card())
    assert unmatched(sandbox) == []
    document: dict[str, Any] = {"name": "mine", "rules": [RARE, MATCHING], "faults": [FAULT]}
    sandbox.put("/control/scenario/", document)
    sandbox.place(card(), amount=1295)
    counted = sandbox.get("/control/scenario/").json()
    assert [rule["matches"] for rule in (*counted["rules"], *counted["faults"])] == [0, 1, 0]
    told = [
        "rule 1 of the scenario mine for €5.00 never matched; credit-card of 1295 cents differs in the amount",
        "the fault of the scenario mine for POST, /v1/order/ never matched; POST /v1/orders/ differs in the path",
    ]
    assert unmatched(sandbox) == told
    assert sandbox.put("/control/scenario/", counted).json() == document
    sandbox.post("/control/reset/")
    sandbox.put("/control/scenario/", {"name": "second-try-works"})
    by_name = "none of the rules of the scenario second-try-works ever matched"
    assert by_name in unmatched(sandbox)
    sandbox.place(card())
    assert by_name not in unmatched(sandbox)


def test_the_end_of_a_test_warns_or_fails(payment_sandbox_server: PaymentSandboxServer) -> None:
    """The unmatched fault is a warning, and an error with the mode ``error``."""
    with payment_sandbox_server.project() as project:
        project.client.faults([FAULT])
        with pytest.warns(PaymentReviewWarning, match="the fault for POST, /v1/order/ never matched"):
            review(project, WARN, "a test")
        with pytest.raises(AssertionError, match="the fault for POST, /v1/order/ never matched"):
            review(project, ERROR, "a test")
