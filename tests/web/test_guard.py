"""No web page in the developer's browser can drive the sandbox."""

import pytest

from tests.support.driver import Sandbox, refused
from tests.support.servers import make_server

PATHS = ["/control/clock/", "/control/projects/", "/control/wait/?idle=1"]
MERCHANT = "/v1/bank-redirect-nl/issuers/"
FOREIGN_HOSTS = ("evil.example", "127.0.0.1.evil.example", "localhost.evil.example:80", "", "[::1")
FOREIGN_ORIGINS = (
    *("https://evil.example", "null", "http://[", "", "http://127.0.0.1:1", "http://localhost"),
)
LOCAL_HOSTS = (
    *("localhost", "LOCALHOST:8080", "localhost.:8080", "shop.localhost", "[::1]:8080", "127.0.0.1"),
    *("172.17.0.2", "192.168.1.5:8080", "[fd00::2]:8080"),
)


@pytest.mark.parametrize("path", [*PATHS, MERCHANT, "/v1/orders/", "/v1/nothing/"])
def test_a_foreign_host_is_refused(sandbox: Sandbox, path: str) -> None:
    """A foreign Host header, as after DNS rebinding, is refused, except for the health check."""
    for host in FOREIGN_HOSTS:
        refused(sandbox.get(path, headers={"Host": host}), 403, "Forbidden")
    assert sandbox.get("/health/", headers={"Host": "evil.example"}).status_code == 200


@pytest.mark.parametrize("path", PATHS)
def test_a_foreign_origin_is_refused(sandbox: Sandbox, path: str) -> None:
    """Even other ports of this machine are foreign; the server's own pages are allowed, without CORS headers."""
    for origin in FOREIGN_ORIGINS:
        refused(sandbox.get(path, headers={"Origin": origin}), 403, "Forbidden")
    answer = sandbox.get(path, headers={"Origin": sandbox.url})
    assert answer.status_code == 200
    assert not [name for name in answer.headers if name.lower().startswith("access-control")]


@pytest.mark.parametrize("path", ["/control/clock/", MERCHANT])
def test_loopback_and_addresses_are_accepted(sandbox: Sandbox, path: str) -> None:
    """Names of loopback are accepted, and IP addresses of containers: DNS rebinding needs a name."""
    for host in LOCAL_HOSTS:
        assert sandbox.get(path, headers={"Host": host}).status_code == 200, host


def test_further_names_can_be_allowed() -> None:
    """The host of the public URL and all configured hosts are accepted, a Compose service's underscore, too."""
    allowed = ["sandbox.ci", "payment_sandbox"]
    with make_server(public_url="https://pay.example:8443/", allow_hosts=allowed) as server:
        server.url = f"http://127.0.0.1:{server.port}"
        sandbox = Sandbox(server)
        for path in ("/control/clock/", MERCHANT):
            for host in ("pay.example", "sandbox.ci:8080", "payment_sandbox", "payment_sandbox:8080"):
                assert sandbox.get(path, headers={"Host": host}).status_code == 200
            error = refused(sandbox.get(path, headers={"Host": "my_shop"}), 403, "Forbidden")
            assert "unknown host name 'my_shop'" in error["value"]
        own = {"Host": "payment_sandbox:8080", "Origin": "http://payment_sandbox:8080"}
        assert sandbox.get("/control/clock/", headers=own).status_code == 200
        sandbox.http.close()


def test_the_refusal_names_the_option(sandbox: Sandbox, caplog: pytest.LogCaptureFixture) -> None:
    """The error names the option for containers, which call each other by name; the log names it once."""
    host = f"{sandbox.project['project_id']}.example"
    for path in (MERCHANT, "/control/clock/", MERCHANT):
        error = refused(sandbox.get(path, headers={"Host": host}), 403, "Forbidden")
        assert f"--allow-host {host}" in error["value"]
    assert sandbox.get("/control/journal/").json()["items"] == [], "the request belongs to no project"
    (message,) = [record.message for record in caplog.records if host in record.message]
    assert f"--allow-host {host}" in message
