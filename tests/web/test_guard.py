"""No web page in the developer's browser can drive the sandbox."""

import pytest
import requests

from tests.support.driver import Sandbox, refused
from tests.support.servers import make_server

PATHS = ["/control/clock/", "/control/projects/", "/control/wait/?idle=1"]
MERCHANT = "/v1/bank-redirect-nl/issuers/"
UNROUTED = ("/v1/orders/", "/v1/nothing/")


@pytest.mark.parametrize("path", [*PATHS, MERCHANT, *UNROUTED])
@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example", "localhost.evil.example:80", "", "[::1"]
)
def test_a_foreign_host_is_refused(sandbox: Sandbox, path: str, host: str) -> None:
    """A foreign Host header, as after DNS rebinding, is refused, except for the health check."""
    refused(sandbox.get(path, headers={"Host": host}), 403, "Forbidden")
    assert sandbox.get("/health/", headers={"Host": "evil.example"}).status_code == 200


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    "origin", ["https://evil.example", "null", "http://[", "", "http://127.0.0.1:1", "http://localhost"]
)
def test_a_foreign_origin_is_refused(sandbox: Sandbox, path: str, origin: str) -> None:
    """Even other ports of this machine are foreign; the server's own pages are allowed, without CORS headers."""
    refused(sandbox.get(path, headers={"Origin": origin}), 403, "Forbidden")
    answer = sandbox.get(path, headers={"Origin": sandbox.url})
    assert answer.status_code == 200
    assert not [name for name in answer.headers if name.lower().startswith("access-control")]


@pytest.mark.parametrize("path", ["/control/clock/", MERCHANT])
@pytest.mark.parametrize(
    "host",
    [
        *("localhost", "LOCALHOST:8080", "localhost.:8080", "shop.localhost", "[::1]:8080", "127.0.0.1"),
        *("172.17.0.2", "192.168.1.5:8080", "[fd00::2]:8080"),
    ],
)
def test_loopback_and_addresses_are_accepted(sandbox: Sandbox, path: str, host: str) -> None:
    """Names of loopback are accepted, and IP addresses of containers: DNS rebinding needs a name."""
    assert sandbox.get(path, headers={"Host": host}).status_code == 200


def test_further_names_can_be_allowed() -> None:
    """The host of the public URL and all configured hosts are accepted."""
    with make_server(public_url="https://pay.example:8443/", allow_hosts=["sandbox.ci"]) as server:
        server.url = f"http://127.0.0.1:{server.port}"
        sandbox = Sandbox(server)
        for host in ("pay.example", "sandbox.ci:8080"):
            for path in ("/control/clock/", MERCHANT):
                assert sandbox.get(path, headers={"Host": host}).status_code == 200
                assert sandbox.get(path, headers={"Host": "other.ci"}).status_code == 403
        sandbox.http.close()


def test_the_refusal_names_the_option(sandbox: Sandbox, caplog: pytest.LogCaptureFixture) -> None:
    """The error names the option for containers, which call each other by name; the log names it once."""
    host = f"{sandbox.project['project_id']}.example"
    for path in (MERCHANT, "/control/clock/", MERCHANT):
        error = refused(sandbox.get(path, headers={"Host": host}), 403, "Forbidden")
        assert f"--allow-host {host}" in error["value"]
    assert sandbox.get("/control/journal/").json()["items"] == [], "the request belongs to no project"
    messages = [record.message for record in caplog.records if host in record.message]
    assert len(messages) == 1
    assert f"--allow-host {host}" in messages[0]


def test_a_name_with_an_underscore_can_be_allowed() -> None:
    """The name of a Compose service may have an underscore; a refusal names it."""
    with make_server(allow_hosts=["payment_sandbox"]) as server:
        for host in ("payment_sandbox", "payment_sandbox:8080"):
            headers, auth = {"Host": host, "Origin": f"http://{host}"}, ("sandbox-key", "")
            answer = requests.get(f"{server.url}/control/clock/", headers=headers, auth=auth, timeout=60)
            assert answer.status_code == 200, answer.text
        answer = requests.get(f"{server.url}/control/projects/", headers={"Host": "my_shop"}, timeout=60)
        assert answer.status_code == 403
        assert "unknown host name 'my_shop'" in answer.json()["error"]["value"]
