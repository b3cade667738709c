"""Another outcome of a call, or another value in its answer, is one difference under the rule of the call or field."""

from collections import defaultdict
from collections.abc import Iterator
from copy import deepcopy
from typing import Any, NamedTuple

import pytest

from payment_sandbox_verify.comparing import compare_scene
from payment_sandbox_verify.conversation import all_scenes
from payment_sandbox_verify.player import Played
from payment_sandbox_verify.steps import ApiCall, ConversationScene
from payment_sandbox_verify.verifying import reference_sandbox

IMPOSSIBLE = 418
OTHER = "another value"
OUTCOMES = [
    # the name of a call, and the rules under which its answers report that it is accepted or refused
    ("a new customer with customer.country of 'NLD'", "CUS-09"),
    ("a new customer with customer.birthdate of '19900131'", "CUS-03"),
    ("a new customer with customer.locale of 'fr-BE'", "CUS-11"),
    ("a new line with order_lines[0].type of 'store_credit'", "LINE-01"),
    ("an allow list of invoice-later-b without order_lines", "INV-01"),
    ("an allow list of invoice-later-b without customer", "INV-02"),
    ("an allow list of pay-later-a without order_lines", "PLA-01"),
    ("a QR request from 999 to 1001 cents", "QR-09"),
    ("a new QR code with size of 99", "QR-20"),
    ("a new QR code with amount of '1295'", "QR-02"),
    ("a new order with amount of '1295'", "SET-11"),
    ("a new transaction with transactions[0].payment_method of 'Credit-Card'", "TRQ-02"),
    ("If-None-Match W/<<f", "SET-34"),
    ("a change of the amount after a visit", "SET-52"),
    ("cancellation of a new bank-transfer order", "SET-50"),
    ("cancellation, pay-later-a authorization, voided in part, then captured", "SET-50"),
    ("refund of 401 cents, credit-card authorization, captured in part, then refunded", "SET-49"),
    ("refund of 1000 cents, invoice-later-b authorization, captured in full", "END-09"),
    ("a new line with order_lines[0].amount of '1295'", "LINE-02"),
    ("recurring of 999 cents with {'cvc': '123'}", "LIM-07"),
    ("the same merchant_order_id", "ORD-07"),
    ("an order with 100 lines", "ORD-16"),
    ("a read without the final slash", "SET-01"),
    ("a new card with transactions[0].payment_method_details.cvc of ''", "CARD-14"),
    ("a bank of {'issuer_id': '<<banks.[0].id>>'}", "IDR-06"),
    ("a customer with null values", "SET-15"),
    ("a customer with more keys", "SET-16"),
    ("one-click of 1750 cents with {'cvc': '123'}", "FLOW-05"),
    ("a new QR code with expiration of '2031-05-04T14:00:00+02:00'", "QR-16"),
    ("a new QR code with size of 2000", "QR-20"),
    ("with a key and a password", "SET-02"),
    ("a new transaction with transactions[0].capture_mode of 'MANUAL'", "TRQ-06"),
    ("capture of 1 socks, credit-card authorization, captured by lines, stale ETag", "IFM-02"),
]
VALUES = [
    # a scene, a field of an order or a refund in it, and its rule
    ("a whole order", "client.user_agent", "ORD-18"),
    ("a whole order", "return_url", "ORD-08"),
    ("a whole order", "webhook_url", "ORD-10"),
    ("order: extra", "extra.note", "SET-14"),
    ("a whole order", "description", "ORD-06"),
    ("QR code: amount", "amount", "QR-01"),
    ("new invoice-later-b order", "status", "SET-40"),
    ("credit-card authorization, voided by amount", "status", "SET-43"),
    ("visited wallet-web order", "status", "STA-07"),
    ("pay-later-a authorization, voided in part, then captured", "transactions.is_capturable", "SET-27"),
    ("credit-card given up", "status", "STA-04"),
    ("recurring", "status", "STA-12"),
    ("new bank-transfer order", "status", "STA-10"),
    ("changed return_url", "return_url", "SET-51"),
    ("credentials", "flags", "SET-26"),
    ("unknown keys", "transactions.expiration_period", "LIM-12"),
    ("one-click", "transactions.payment_method_details.first_authorised_transaction_id", "CARD-21"),
    ("unknown keys", "customer.phone_numbers", "CUS-05"),
]


class Call(NamedTuple):
    """A call of a scene that the sandbox has played."""

    step: ApiCall
    play: Played

    def differences(self, **changes: Any) -> list[tuple[str, str]]:
        """Return the rule and the path of each difference of a server whose answer is changed."""
        (ours,) = self.play.observations
        theirs = self.play._replace(observations=[ours._replace(**changes)])
        return [(each.rule, each.path) for each in compare_scene(theirs, self.play).differences]

    def with_other_outcome(self) -> list[tuple[str, str]]:
        """Return the differences of a server that refuses the call, or accepts it if the sandbox refuses it."""
        answer = self.play.observations[0].answer
        return self.differences(answer=answer._replace(status=IMPOSSIBLE if answer.is_success else 200))

    def with_other_values(self, seen: set[str]) -> Iterator[tuple[str, list[tuple[str, str]]]]:
        """Yield the path of each unseen value of a successful answer, and the differences that another one makes."""
        (ours,) = self.play.observations
        body = deepcopy(ours.shown.get("body")) if ours.answer.is_success else None
        for record, key, path in values(body):
            if path in seen:
                continue
            seen.add(path)
            before, record[key] = record[key], OTHER
            yield path, self.differences(shown={**ours.shown, "body": body})
            record[key] = before


def values(node: Any, path: str = "") -> Iterator[tuple[Any, Any, str]]:
    """Yield the record and the key of each value, and its path without indices."""
    keys: Any = node if isinstance(node, dict) else range(len(node)) if isinstance(node, list) else ()
    for key in list(keys):
        below = f"{path}.{key}".lstrip(".") if isinstance(node, dict) else path
        is_list_of_records = isinstance(node[key], list) and any(isinstance(each, dict) for each in node[key])
        if isinstance(node[key], dict) or is_list_of_records:
            yield from values(node[key], below)
        else:
            yield node, key, below


def calls_of(*scenes: ConversationScene) -> list[Call]:
    """Play scenes, and return their calls, each as a scene of its own."""
    with reference_sandbox() as reference:
        return [
            Call(step, played._replace(scene=scene._replace(steps=(step,)), observations=[seen]))
            for scene in scenes
            for played in [reference.play(scene)]
            for step, seen in zip(scene.steps, played.observations, strict=True)
            if isinstance(step, ApiCall) and not seen.problem
        ]


@pytest.fixture(scope="module")
def calls() -> list[Call]:
    """The calls of the scenes with the listed calls and values."""
    listed = {name for name, _ in OUTCOMES} | {scene for scene, *_ in VALUES}
    return calls_of(
        *(scene for scene in all_scenes() if listed & {scene.name, *(step.name for step in scene.steps)})
    )


@pytest.mark.parametrize(("name", "rule"), OUTCOMES)
def test_another_outcome_is_reported_under_the_rule_of_its_call(
    calls: list[Call], name: str, rule: str
) -> None:
    """The conversation has this call, and its only difference has this rule."""
    outcomes = [call.with_other_outcome() for call in calls if call.step.name == name]
    assert [(rule, "")] in outcomes, outcomes


@pytest.mark.parametrize(("scene", "field", "rule"), VALUES)
def test_another_value_is_reported_under_the_rule_of_its_field(
    calls: list[Call], scene: str, field: str, rule: str
) -> None:
    """A call of the scene answers this field, and another value is a difference with this rule."""
    differing = [
        each for call in calls if call.play.scene.name == scene for each in call.with_other_values(set())
    ]
    assert (field, [(rule, field)]) in differing, {path: found for path, found in differing}


@pytest.mark.prove
def test_every_outcome_and_every_value_is_compared() -> None:
    """Any other outcome, and any other value of an answer, is one difference, whichever call it is."""
    calls = calls_of(*all_scenes())
    assert [call.step for call in calls if len(call.with_other_outcome()) != 1] == []
    seen: dict[tuple[str, str], set[str]] = defaultdict(set)
    for call in calls:
        for path, differences in call.with_other_values(seen[call.step.method, call.step.path]):
            assert [each.lstrip(".") for _, each in differences] == [path], (call.step, path)
    assert sum(map(len, seen.values())) > 500
