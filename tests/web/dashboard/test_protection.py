"""The dashboard requires sign-in if configured, and refuses forms of other sites."""

from collections.abc import Iterator

import pytest
import requests

from payment_sandbox.serving.server import Server
from tests.support.dashboard import Dashboard
from tests.support.driver import Sandbox, card
from tests.support.payer import HTML, Page
from tests.support.servers import make_server

TOKEN = "a-control-token-for-this-test"
COOKIE = "sandbox_dashboard"


@pytest.fixture(scope="module")
def guarded() -> Iterator[Server]:
    """A server with a control token that is reachable under another name."""
    with make_server(control_token=TOKEN, allow_hosts=["sandbox.example"]) as server:
        yield server


@pytest.fixture
def two_projects(guarded: Server) -> list[tuple[str, str]]:
    """The IDs and keys of two projects on the guarded server."""
    created = [guarded.registry.create({"name": name}) for name in ("First", "Second")]
    return [(project.project_id, key) for project, key in created]


def browser() -> requests.Session:
    """Return a session that sends a browser's headers."""
    session = requests.Session()
    session.headers.update(HTML)
    return session


def sign_in(server: Server, secret: str, **headers: str) -> tuple[requests.Session, requests.Response]:
    """Sign in with a new browser and return it with the resulting page."""
    session = browser()
    address = f"{server.url}/dashboard/sign-in/"
    answer = session.post(
        address, data={"secret": secret}, headers={"Origin": server.url, **headers}, timeout=5
    )
    return session, answer


def test_every_page_requires_a_key(guarded: Server, two_projects: list[tuple[str, str]]) -> None:
    """Every page asks for sign-in and does not reveal whether the project exists."""
    session = browser()
    for path in (
        f"{two_projects[0][0]}/orders/",
        f"{two_projects[0][0]}/events/",
        "no-such-project/settings/",
    ):
        answer = session.get(f"{guarded.url}/dashboard/{path}", timeout=5)
        assert "sign-in" in Page(answer).ids, path
        assert "First" not in answer.text
    answer = session.get(f"{guarded.url}/", timeout=5)
    assert "sign-in" in Page(answer).ids
    answer = session.post(
        f"{guarded.url}/dashboard/{two_projects[0][0]}/reset/", headers={"Origin": guarded.url}, timeout=5
    )
    assert "sign-in" in Page(answer).ids


def test_a_key_opens_its_own_project(guarded: Server, two_projects: list[tuple[str, str]]) -> None:
    """The key opens only its project, and the cookie is protected and has no key."""
    (first, key), (second, other_key) = two_projects
    session, answer = sign_in(guarded, key)
    assert answer.url.endswith(f"/dashboard/{first}/orders/")
    cookie = answer.history[0].headers["Set-Cookie"]
    for part in ("HttpOnly", "SameSite=Strict", "Path=/dashboard"):
        assert part in cookie
    assert key not in cookie + answer.text
    assert "sign-in" in Page(session.get(f"{guarded.url}/dashboard/{second}/orders/", timeout=5)).ids
    data = {"secret": other_key, "next": f"/dashboard/{second}/settings/"}
    headers = {"Origin": guarded.url}
    answer = session.post(f"{guarded.url}/dashboard/sign-in/", data=data, headers=headers, timeout=5)
    assert answer.url.endswith(f"/{second}/settings/")
    chooser = session.get(f"{guarded.url}/dashboard/", timeout=5).text
    assert "First" in chooser
    assert "Second" in chooser
    session.post(f"{guarded.url}/dashboard/sign-out/", headers=headers, timeout=5)
    assert "sign-in" in Page(session.get(f"{guarded.url}/dashboard/{first}/orders/", timeout=5)).ids


def test_the_control_token_opens_all(guarded: Server, two_projects: list[tuple[str, str]]) -> None:
    """The control token opens all projects; a wrong one is refused with a message."""
    session, _ = sign_in(guarded, TOKEN)
    for project_id, _ in two_projects:
        assert session.get(f"{guarded.url}/dashboard/{project_id}/orders/", timeout=5).status_code == 200
    for wrong in ("", "no-such-key", TOKEN[:-1], "é", "\x00"):
        _, answer = sign_in(guarded, wrong)
        assert answer.status_code == 401
        assert "wrong" in Page(answer).ids
        assert COOKIE not in answer.cookies


@pytest.mark.parametrize("value", ["*|", "*|0", "|", "*", "{id}|00", "{id},*|{sign}", "é|é"])
def test_a_forged_cookie_opens_nothing(
    guarded: Server, two_projects: list[tuple[str, str]], value: str
) -> None:
    """A cookie with a wrong or missing signature is refused."""
    (first, key), _ = two_projects
    session, _ = sign_in(guarded, key)
    sign = next(cookie.value or "" for cookie in session.cookies if cookie.name == COOKIE).rpartition("|")[2]
    forged = value.format(id=first, sign=sign.strip('"'))
    answer = requests.get(
        f"{guarded.url}/dashboard/{first}/orders/",
        headers={**HTML, "Cookie": f'{COOKIE}="{forged}"'.encode()},
        timeout=5,
    )
    assert "sign-in" in Page(answer).ids


@pytest.mark.parametrize(
    "address", ["https://evil.example/", "//evil.example/", "/\\evil.example", "/v1/orders/", "javascript:x"]
)
def test_redirects_stay_within_the_dashboard(
    guarded: Server, two_projects: list[tuple[str, str]], address: str
) -> None:
    """After sign-in the browser is redirected within the dashboard only."""
    data = {"secret": two_projects[0][1], "next": address}
    answer = browser().post(
        f"{guarded.url}/dashboard/sign-in/",
        data=data,
        headers={"Origin": guarded.url},
        allow_redirects=False,
        timeout=5,
    )
    assert answer.headers["Location"] == f"/dashboard/{two_projects[0][0]}/orders/"


FOREIGN = [{"Origin": "https://evil.example"}, {"Origin": "null"}, {"Host": "evil.example"}]


@pytest.mark.parametrize("headers", FOREIGN)
def test_other_sites_are_refused(sandbox: Sandbox, headers: dict[str, str]) -> None:
    """Foreign origins and hosts and wrong tokens are refused even without sign-in."""
    dashboard = Dashboard(sandbox)
    token = dashboard.open("settings/").forms[-1].fields["token"]
    order = sandbox.place(card())
    answer = requests.post(f"{dashboard.base}reset/", data={"token": token}, headers=headers, timeout=5)
    assert answer.status_code == 403
    answer = requests.get(f"{dashboard.base}orders/", headers=headers, timeout=5)
    assert answer.status_code == 403
    for wrong in ({}, {"token": "0" * 64}):
        answer = requests.post(f"{dashboard.base}reset/", data=wrong, timeout=5)
        assert answer.status_code == 403
    assert sandbox.read(order)["status"] == "new"


def test_a_token_of_another_project_is_refused(project: object, sandbox: Sandbox) -> None:
    """Form tokens are valid for one project only."""
    other = Sandbox(sandbox.server)
    token = Dashboard(other).open("settings/").forms[-1].fields["token"]
    answer = requests.post(f"{Dashboard(sandbox).base}reset/", data={"token": token}, timeout=5)
    assert answer.status_code == 403


def test_a_form_redirects_within_the_dashboard(sandbox: Sandbox) -> None:
    """A form's ``back`` field cannot redirect to another site."""
    dashboard = Dashboard(sandbox)
    page = dashboard.open()
    form = page.form_with("PT1M")
    answer = dashboard.http.post(
        form.action,
        data={**form.fields, "by": "PT1M", "back": "https://evil.example/"},
        headers={"Origin": sandbox.url},
        allow_redirects=False,
        timeout=5,
    )
    assert answer.headers["Location"].startswith("/dashboard/")


def test_open_pages_get_events(sandbox: Sandbox) -> None:
    """Open pages receive only a short event that tells them to reload."""
    dashboard = Dashboard(sandbox)
    with dashboard.http.get(f"{dashboard.base}events/?after=0", stream=True, timeout=5) as stream:
        assert stream.headers["Content-Type"].startswith("text/event-stream")
        sandbox.place(card())
        lines = stream.iter_lines(chunk_size=1, decode_unicode=True)
        assert next(line for line in lines if line.startswith("event: ")) == "event: changed"
        assert next(line for line in lines if line.startswith("data: ")) == "data: {}"
