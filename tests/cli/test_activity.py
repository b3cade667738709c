"""The activity that ``serve`` prints, also under attack: injected text, secrets, and many projects."""

import json
import signal
from collections.abc import Callable
from typing import Any

import pytest
import requests

from payment_sandbox.serving.server import Server
from tests.cli.conftest import PrintedLines, Serve, printing
from tests.cli.test_serve import url_in
from tests.support.driver import Sandbox, card
from tests.support.shop import Shop

KEY = ("sandbox-key", "")

ORDER = {"currency": "EUR", "amount": 1295, "transactions": [{"payment_method": "credit-card"}]}


def test_calls_and_webhooks_are_printed(call: Callable[..., Any], printed: PrintedLines, shop: Shop) -> None:
    """A line has the call and its status, or the webhook and the shop's answer."""
    order = call("POST", "/v1/orders/", {**ORDER, "webhook_url": shop.url}).json()["id"]
    call("POST", f"/v1/orders/{order}/refunds/", {"amount": 500})
    call("POST", f"/control/orders/{order}/act/", {"actor": "customer", "action": "pay"})
    call("GET", f"/v1/orders/{order}/")
    printed.wait_for(f"GET /v1/orders/{order}/")  # the order of this line and of the webhook's is not fixed
    lines = printed.wait_for("webhook completed")
    assert lines[0] == f"POST /v1/orders/  201  order {order}"
    (refusal,) = (line for line in lines if "/refunds/  409  " in line)
    assert "refund" in refusal.partition("409")[2], "it says why"
    (webhook,) = (line for line in lines if "webhook completed" in line)
    assert webhook.startswith(f"webhook completed to {shop.url}  answered 200 in ")
    assert webhook.endswith(f" ms  order {order}")
    assert f"GET /v1/orders/{order}/  200" in lines


def test_unknown_fields_name_the_nearest_one(call: Callable[..., Any], printed: PrintedLines) -> None:
    """Unknown fields and query parameters are printed with a suggestion."""
    order = call("POST", "/v1/orders/", {**ORDER, "descripton": "Socks"}).json()["id"]
    call("GET", f"/v1/orders/{order}/?field[]=amount_details")
    lines = printed.wait_for("fields[]")
    assert lines[0].endswith("ignored: descripton (did you mean description?)")
    assert lines[-1].endswith("200  ignored: ?field[] (did you mean fields[]?)")


def test_the_first_status_without_a_webhook_is_explained_once(
    call: Callable[..., Any], printed: PrintedLines
) -> None:
    """The explanation names the command that sets an address."""
    for _ in range(2):
        order = call("POST", "/v1/orders/", ORDER).json()["id"]
        call("POST", f"/control/orders/{order}/act/", {"actor": "customer", "action": "pay"})
    call("GET", f"/v1/orders/{order}/")
    printed.wait_for(f"GET /v1/orders/{order}/")
    assert printed.text.count("no webhook was sent") == 1
    assert "payment-sandbox settings webhook_url=URL" in printed.text


def test_a_webhook_that_fails_says_why_and_when_the_next_one_comes(
    call: Callable[..., Any], printed: PrintedLines
) -> None:
    """The line has the address, the error and the sandbox time of the retry."""
    order = call("POST", "/v1/orders/", {**ORDER, "webhook_url": "http://127.0.0.1:9/hook"}).json()["id"]
    call("POST", f"/control/orders/{order}/act/", {"actor": "customer", "action": "fail"})
    lines = printed.wait_for("webhook error")
    assert lines[-1] == (
        "webhook error to http://127.0.0.1:9/hook  connection refused: no server listens on 127.0.0.1:9  "
        f"order {order}  attempt 1, the next one at 2026-03-01 12:02:00"
    )
    call("PUT", "/control/faults/", {"webhooks": [{"then": {"answer": 503}}]})
    call("POST", "/control/clock/advance/", {"until": "idle"})
    line = printed.wait_for("attempt 10")[-1]
    assert line.endswith(f"503 (fault), never sent  order {order}  attempt 10 was the last one")


@pytest.mark.parametrize(
    ("path", "options", "words"),
    [
        ("/v1/bank-redirect-nl/issuers/", {"auth": ("nope", "")}, "401  no project has this API key"),
        (
            "/v1/bank-redirect-nl/issuers/",
            {"headers": {"Host": "shop.test"}},
            "403  unknown host name 'shop.test'",
        ),
        ("/v1/nothing/", {"auth": ("nope", "")}, "404  this path does not exist"),
        (
            "/control/project/",
            {"headers": {"Origin": "http://evil.test"}},
            "403  pages from 'http://evil.test'",
        ),
    ],
)
def test_requests_that_belong_to_no_project_are_printed(
    call: Callable[..., Any], printed: PrintedLines, path: str, options: Any, words: str
) -> None:
    """Requests with a wrong key, host or origin are printed, though no journal records them."""
    call("GET", path, **options)
    (line,) = printed.wait_for(words)
    assert line.startswith(f"GET {path}  {words}")


def test_lines_for_programs(printed: PrintedLines) -> None:
    """Each JSON line contains the fields and the message; it is valid whatever is masked."""
    with printing(printed, as_json=True) as server:
        for path in ("/v1/4111111111111111/", "/v1/cvc:123/", "/v1/cvc%22:%22123%22/"):
            requests.get(f"{server.url}{path}", auth=KEY)
        requests.get(f"{server.url}/v1/cvc%22:%22123%22/")
        printed.wait_for("refused")
    lines = sorted(
        map(json.loads, printed.text.splitlines()), key=lambda line: bool(line["kind"] != "request")
    )
    assert [line["status"] for line in lines] == [404] * 4
    assert (lines[0]["kind"], lines[0]["method"], lines[0]["level"]) == ("request", "GET", "info")
    assert f"GET {lines[0]['path']}  404  {lines[0]['error']}" in lines[0]["message"]
    assert "4111111111111111" not in printed.text
    assert not any("123" in line["path"] or "123" in line["message"] for line in lines)


@pytest.mark.rule("CTL-29")
@pytest.mark.parametrize("as_json", [False, True])
def test_a_code_in_the_name_of_an_unknown_key_is_not_printed(printed: PrintedLines, as_json: bool) -> None:
    """A name that is JSON is masked as JSON, and what stands beside a name in a line is no code."""
    names = ('{"card_code": {"a": {"b": "q9w8e7"}}}', '{"cvc": "q9w8\\"e7"}', '{"cvc": "\\u0071\\u0039"}')
    with printing(printed, as_json=as_json) as server:
        requests.post(f"{server.url}/v1/orders/", json={**card(), **dict.fromkeys(names, 1)}, auth=KEY)
        requests.get(f"{server.url}/v1/security-code", auth=KEY)
        printed.wait_for("GET /v1/security-code  404")
    assert "ignored:" in printed.text
    assert not any(part in printed.text for part in ("q9w8", "u0071"))


def test_a_full_or_closed_pipe_stops_only_the_output(serve: Serve) -> None:
    """With a full pipe, and with a closed one, as after ``head``, the server still answers and stops."""
    process, first_line = serve()
    with requests.Session() as session:
        session.auth = KEY
        for count in (500, 3):
            for _ in range(count):
                body = {**ORDER, "x" * 300: 1}
                assert session.post(f"{url_in(first_line)}/v1/orders/", json=body).status_code == 201
            process.stdout.close()
    process.send_signal(signal.SIGTERM)
    assert process.wait() == 0


@pytest.mark.parametrize("options", [(), ("--quiet",)])
def test_nothing_is_lost_at_the_end(serve: Serve, options: tuple[str, ...]) -> None:
    """The line of a call immediately before Ctrl-C is printed; with ``--quiet``, only the start is."""
    process, first_line = serve(*options)
    for number in range(20):
        requests.get(f"{url_in(first_line)}/v1/orders/{number}/", auth=KEY)
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate()
    printed = [number for number in range(20) if f"/v1/orders/{number}/  404" in output]
    assert printed == ([] if options else [*range(20)])


def test_nothing_in_a_line_breaks_it_or_controls_the_terminal(
    printing_server: Server, call: Callable[..., Any], printed: PrintedLines
) -> None:
    """Line breaks and escape codes are printed escaped, with and without a valid key."""
    evil = "/v1/%0aFAKE%1b%5b2J%c2%9b%e2%80%ae/"
    call("GET", evil)
    call("GET", evil, auth=("nobody", ""))
    Sandbox(printing_server, name="Shop\n\x1b[2Jowner").create(card())
    printed.wait_for("owner]")
    assert len(printed.text.splitlines()) == 3
    assert printed.text.replace("\n", "").isprintable()
    assert printed.text.count("\\nFAKE\\x1b[2J\\x9b\\u202e") == 2


def test_no_key_is_printed(printing_server: Server, call: Callable[..., Any], printed: PrintedLines) -> None:
    """API keys are not printed, even in a path or a header."""
    key = Sandbox(printing_server).key
    for auth in (("nobody", ""), (key, "")):
        call("GET", f"/v1/orders/{key}/", auth=auth)
    call("GET", "/v1/orders/x/", headers={"Host": key})
    lines = printed.wait_for("unknown host name")
    assert len(lines) == 3
    assert key not in printed.text
