"""Findings of the review about requests, addresses and scenarios."""

import pytest

from payment_sandbox.client.project_review import Finding
from payment_sandbox.testing.project_fixture import PaymentSandbox
from tests.support.in_process import place, shop_that


@pytest.fixture
def shop_sandbox(payment_sandbox: PaymentSandbox) -> PaymentSandbox:
    """A project whose shop reads the order for each webhook."""

    def read(order_id: str) -> None:
        payment_sandbox.session.get(f"{payment_sandbox.base_url}/v1/orders/{order_id}/")

    payment_sandbox.deliver_to(shop_that(read))
    return payment_sandbox


def only_finding(sandbox: PaymentSandbox) -> Finding:
    """Return the only finding."""
    (finding,) = sandbox.review()
    return finding


def test_unknown_keys_are_findings(shop_sandbox: PaymentSandbox) -> None:
    """Each unknown key is one finding that suggests the nearest known key."""
    place(shop_sandbox, custommer={"first_name": "Jan"})
    place(shop_sandbox, custommer={"first_name": "Jan"})
    place(shop_sandbox, customer={"first_nam": "Jan", "id": "7"}, zzz=1, id="1001", status="new")
    problems = {finding.problem: finding for finding in shop_sandbox.review()}
    assert set(problems) == {
        "The service does not know the key 'custommer' and ignored it; did you mean 'customer'?",
        "The service does not know the key 'customer.first_nam' and ignored it; did you mean 'first_name'?",
        "The service does not know the key 'customer.id' and ignored it",
        "The service does not know the key 'zzz' and ignored it",
        "id is read-only: the service sets it; your own number belongs in merchant_order_id",
        "status is read-only: the service sets it",
    }
    assert [each.kind for each in problems.values() if "status is" in each.problem] == ["hint"]
    assert sorted(len(each.requests) for each in problems.values()) == [1, 1, 1, 1, 1, 2]
    assert problems["The service does not know the key 'zzz' and ignored it"].advice == (
        "Leave it out, or put it into extra."
    )


def test_an_order_that_is_written_back_as_read_is_no_mistake(shop_sandbox: PaymentSandbox) -> None:
    """Read-only keys of an order are not reported as unknown."""
    order_id = place(shop_sandbox)
    url = f"{shop_sandbox.base_url}/v1/orders/{order_id}/"
    order = shop_sandbox.session.get(url).json()
    assert (
        shop_sandbox.session.put(url, json={**order, "status": "paid", "description": "Socks"}).status_code
        == 200
    )
    assert shop_sandbox.review() == []


def test_rules_that_never_matched(shop_sandbox: PaymentSandbox) -> None:
    """An unmatched rule is a hint about the test, not a mistake of the shop."""
    shop_sandbox.scenario(
        {
            "name": "two",
            "rules": [
                {"when": {"payment_method": "wallet-web"}, "then": {"customer": "waits"}},
                {"when": {"amount": 7}, "then": {"customer": "fails"}},
            ],
        }
    )
    assert shop_sandbox.review() == []
    place(shop_sandbox)
    finding = only_finding(shop_sandbox)
    assert (finding.rule, finding.kind) == ("SCN-02", "hint")
    assert finding.problem == "A rule of the scenario 'two' never matched"
    assert finding.requests == ('rule 2: when {"amount": 7}',)
    shop_sandbox.review().assert_clean()


def test_a_clean_review_and_one_that_is_not(shop_sandbox: PaymentSandbox) -> None:
    """``assert_clean`` fails with all findings in full."""
    shop_sandbox.review().assert_clean()
    for number in range(30):
        place(shop_sandbox, **{f"unknown_{number}": 1})
    with pytest.raises(AssertionError) as failed:
        shop_sandbox.review().assert_clean()
    assert str(failed.value).startswith("the review found 30 mistakes in the integration:")
    assert all(f"unknown_{number}'" in str(failed.value) for number in range(30))
    shop_sandbox.review().assert_clean(ignore={"SET-12"})
