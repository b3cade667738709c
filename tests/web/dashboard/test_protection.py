"""Who may use the dashboard, and what other sites' pages can do with it: nothing."""

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
    """A server with a control token, as others can reach it."""
    with make_server(control_token=TOKEN, allow_hosts=["sandbox.example"]) as server:
        yield server


@pytest.fixture
def two(guarded: Server) -> list[tuple[str, str]]:
    """Two projects on it: their ids and keys."""
    made = [guarded.registry.create({"name": name}) for name in ("First", "Second")]
    return [(project.project_id, key) for project, key in made]


def browser() -> requests.Session:
    """A new browser."""
    session = requests.Session()
    session.headers.update(HTML)
    return session


def signed_in(server: Server, secret: str, **headers: str) -> tuple[requests.Session, requests.Response]:
    """A browser that has sent the form, and the page on which it arrived."""
    session = browser()
    address = f"{server.url}/dashboard/sign-in/"
    answer = session.post(
        address, data={"secret": secret}, headers={"Origin": server.url, **headers}, timeout=5
    )
    return session, answer


def test_nobody_gets_in_without_a_key(guarded: Server, two: list[tuple[str, str]]) -> None:
    """Every page asks to sign in, whether there is such a project or not."""
    session = browser()
    for path in (f"{two[0][0]}/orders/", f"{two[0][0]}/events/", "no-such-project/settings/"):
        answer = session.get(f"{guarded.url}/dashboard/{path}", timeout=5)
        assert "sign-in" in Page(answer).ids, path
        assert "First" not in answer.text
    answer = session.get(f"{guarded.url}/", timeout=5)
    assert "sign-in" in Page(answer).ids
    answer = session.post(
        f"{guarded.url}/dashboard/{two[0][0]}/reset/", headers={"Origin": guarded.url}, timeout=5
    )
    assert "sign-in" in Page(answer).ids


def test_a_key_opens_its_own_project(guarded: Server, two: list[tuple[str, str]]) -> None:
    """And no other one; the cookie is out of reach for scripts and other sites, and holds no key."""
    (first, key), (second, other_key) = two
    session, answer = signed_in(guarded, key)
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


def test_the_control_token_opens_all(guarded: Server, two: list[tuple[str, str]]) -> None:
    """A wrong key opens nothing, and is told."""
    session, _ = signed_in(guarded, TOKEN)
    for project_id, _ in two:
        assert session.get(f"{guarded.url}/dashboard/{project_id}/orders/", timeout=5).status_code == 200
    for wrong in ("", "no-such-key", TOKEN[:-1], "é", "\x00"):
        _, answer = signed_in(guarded, wrong)
        assert answer.status_code == 401
        assert "wrong" in Page(answer).ids
        assert COOKIE not in answer.cookies


@pytest.mark.parametrize("value", ["*|", "*|0", "|", "*", "{id}|00", "{id},*|{sign}", "é|é"])
def test_a_forged_cookie_opens_nothing(guarded: Server, two: list[tuple[str, str]], value: str) -> None:
    """Whatever is in it."""
    (first, key), _ = two
    session, _ = signed_in(guarded, key)
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
def test_nobody_is_led_elsewhere(guarded: Server, two: list[tuple[str, str]], address: str) -> None:
    """After the sign-in, and after a form."""
    data = {"secret": two[0][1], "next": address}
    answer = browser().post(
        f"{guarded.url}/dashboard/sign-in/",
        data=data,
        headers={"Origin": guarded.url},
        allow_redirects=False,
        timeout=5,
    )
    assert answer.headers["Location"] == f"/dashboard/{two[0][0]}/orders/"


FOREIGN = [{"Origin": "https://evil.example"}, {"Origin": "null"}, {"Host": "evil.example"}]


@pytest.mark.parametrize("headers", FOREIGN)
def test_other_sites_are_refused(sandbox: Sandbox, headers: dict[str, str]) -> None:
    """Also where nobody has to sign in; a post needs a token of ours besides."""
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
    """Each project has its own."""
    other = Sandbox(sandbox.server)
    token = Dashboard(other).open("settings/").forms[-1].fields["token"]
    answer = requests.post(f"{Dashboard(sandbox).base}reset/", data={"token": token}, timeout=5)
    assert answer.status_code == 403


def test_a_form_leads_back_to_us_only(sandbox: Sandbox) -> None:
    """Whatever its hidden field says."""
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
    """They say that something has changed, and nothing that 300 open pages would have to be sent each."""
    dashboard = Dashboard(sandbox)
    with dashboard.http.get(f"{dashboard.base}events/?after=0", stream=True, timeout=5) as stream:
        assert stream.headers["Content-Type"].startswith("text/event-stream")
        sandbox.place(card())
        lines = stream.iter_lines(chunk_size=1, decode_unicode=True)
        assert next(line for line in lines if line.startswith("event: ")) == "event: changed"
        assert next(line for line in lines if line.startswith("data: ")) == "data: {}"
