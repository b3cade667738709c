"""No output has a card number, CVC or API key, however it is spelled; test_canaries tries every field (CTL-29)."""

import json

import pytest
import requests

from payment_sandbox.projects.journal import HEADER_VALUE_MAX, JOURNAL_BODY_BYTES, PATH_LENGTH_MAX
from tests.support.canaries import CODE, GROUPS, NUMBER, shown
from tests.support.dashboard import Dashboard
from tests.support.driver import Sandbox, by, card
from tests.support.payer import Page
from tests.support.servers import make_server
from tests.support.shop import Shop


@pytest.mark.rule("CTL-29")
def test_the_address_of_a_pending_webhook_is_masked(watched: Sandbox, shop: Shop) -> None:
    """The response to an advance masks the address of a pending webhook, which is called unmasked."""
    _, answered = shop.hold()
    watched.settings(webhook_url=f"{shop.url}?key={watched.key}&number={NUMBER}")
    watched.place(by("bank-transfer"))
    advanced = watched.post("/control/clock/advance/", {"by": "PT1H", "timeout": 0.3})
    answered.set()
    assert advanced.json()["under_way"][0]["url"].startswith(shop.url)
    assert shown(advanced.text, watched.key) == []
    watched.settle()
    assert f"key={watched.key}" in shop.received[0].path


@pytest.mark.rule("CTL-29")
@pytest.mark.parametrize("place", ["header", "path", "query", "body"])
def test_secrets_are_masked_before_texts_are_truncated(sandbox: Sandbox, place: str) -> None:
    """Secrets are masked before long texts are truncated."""
    for length in (HEADER_VALUE_MAX, PATH_LENGTH_MAX, JOURNAL_BODY_BYTES):
        for secret in (sandbox.key, NUMBER):
            filled = "a" * max(0, length - len(secret) - 10) + " " + secret + "b" * 2000
            for shift in range(0, 40, 7):
                text = f"{'a' * shift}{filled}"
                if place == "header" and length == HEADER_VALUE_MAX:
                    sandbox.get("/v1/orders/x/", headers={"X-Debug": text})
                elif place == "body":
                    sandbox.create(card(), description=text)
                elif length == PATH_LENGTH_MAX:
                    sandbox.get("/v1/orders/" + (f"{text}/" if place == "path" else f"?{text}"))
    outputs = sandbox.get("/control/journal/").text
    assert "aaaa" in outputs
    assert NUMBER[:10] not in outputs
    assert sandbox.key[:10] not in outputs


def resend(sandbox: Sandbox, **form: str) -> Page:
    """Resend the first webhook with the form on its page."""
    browser = Dashboard(sandbox)
    page = browser.open(f"requests/{sandbox.webhooks()[0]['id']}/")
    return browser.send(next(each for each in page.forms if "url" in each.fields), form, page)


@pytest.mark.rule("CTL-29", "CTL-22")
def test_a_webhook_that_is_sent_with_another_body_is_masked(watched: Sandbox, shop: Shop) -> None:
    """The shop gets a resent body unmasked; a deferred one with secrets is refused, as it would be stored."""
    watched.place(by("bank-transfer"))
    watched.settle()
    body = json.dumps({"number": " ".join(GROUPS), "cvc": CODE, "key": watched.key})
    resend(watched, body=body, url=f"{shop.url}?key={watched.key}")
    assert shop.received[-1].raw.decode() == body
    assert watched.key in shop.received[-1].path
    assert "Must not contain a card number" in resend(watched, body=body, after="PT1H").text
    assert "resent in an hour" in resend(watched, body="another one", after="PT1H").text
    for name in ("webhooks", "timeline", "state", "report"):
        assert shown(watched.get(f"/control/{name}/").text, watched.key) == []
    resend(watched, body="ä" * 10_000)
    assert watched.webhooks()[0]["attempts"][-1]["request"]["body"] == "ä" * 2048, "4 KiB are stored"


def test_a_key_that_is_a_common_word_is_no_secret() -> None:
    """A chosen key that is a common word, such as shop, may appear in names."""
    with make_server() as server:
        server.registry.create({"name": "shop"}, api_key="shop")
        body = {"name": "a shop", "owner": "shop"}
        changed = requests.patch(f"{server.url}/control/project/", json=body, auth=("shop", ""))
        assert changed.json()["settings"]["name"] == "a shop"


def test_other_data_is_not_masked(sandbox: Sandbox) -> None:
    """Identifiers, times, amounts, account numbers and words about codes are not masked."""
    body = {
        "merchant_order_id": "2026112212345678",
        "description": "DE89370400440532013000, postcode 1012 AB, at 2026-03-01T12:00:00.000000+00:00",
        "extra": {"id": "41111111-1111-4111-8111-111111111111", "cvc_checked": True, "code": "9173 %41"},
    }
    sandbox.place(card(), **body)
    (entry,) = sandbox.get("/control/journal/").json()["items"]
    assert {key: entry["request"][key] for key in body} == body
