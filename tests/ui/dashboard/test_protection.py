"""The dashboard requires sign-in if configured, and refuses forms of other sites."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import requests

from payment_sandbox.projects.clock import RealTime
from payment_sandbox.serving.server import Server
from payment_sandbox.web.site import (
    SIGN_IN_ADDRESSES_MAX,
    SIGN_IN_FAILURES_MAX,
    SIGN_IN_PAUSE_SECONDS,
    SignInFailures,
)
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


def sign_in(
    server: Server, secret: str, session: requests.Session | None = None, **more: Any
) -> tuple[requests.Session, requests.Response]:
    """Sign in with a new browser, or again with a known one; return it with the resulting page."""
    session = session or browser()
    address, data = f"{server.url}/dashboard/sign-in/", {"secret": secret, "next": more.pop("next", "")}
    return session, session.post(address, data=data, headers={"Origin": server.url}, **more)


def test_every_page_requires_a_key(guarded: Server, two_projects: list[tuple[str, str]]) -> None:
    """Every page asks for sign-in and does not reveal whether the project exists."""
    session = browser()
    for path in (
        f"{two_projects[0][0]}/orders/",
        f"{two_projects[0][0]}/events/",
        "no-such-project/settings/",
    ):
        answer = session.get(f"{guarded.url}/dashboard/{path}")
        assert "sign-in" in Page(answer).ids, path
        assert "First" not in answer.text
    answer = session.get(f"{guarded.url}/")
    assert "sign-in" in Page(answer).ids
    answer = session.post(
        f"{guarded.url}/dashboard/{two_projects[0][0]}/reset/", headers={"Origin": guarded.url}
    )
    assert "sign-in" in Page(answer).ids


class WallClock:
    """A wall clock that a test sets, without real waits."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def real(self) -> RealTime:
        """The host's clocks of a server."""
        start = datetime(2026, 1, 1, tzinfo=UTC)
        return RealTime(lambda: start + timedelta(seconds=self.seconds), lambda: self.seconds)


def test_failed_sign_ins_from_one_address_slow_down() -> None:
    """Each address has its own limit, a success does not count, and the memory is bounded."""
    clock = WallClock()
    failures = SignInFailures(clock.real())
    for _ in range(SIGN_IN_FAILURES_MAX):
        assert failures.admit("192.0.2.1") == 0
    assert failures.admit("192.0.2.1") == SIGN_IN_PAUSE_SECONDS
    assert failures.admit("192.0.2.2") == 0, "other clients are not locked out"
    clock.seconds += SIGN_IN_PAUSE_SECONDS
    assert failures.admit("192.0.2.1") == 0
    assert failures.admit("192.0.2.1") > 0
    for _ in range(3 * SIGN_IN_FAILURES_MAX):
        assert failures.admit("192.0.2.3") == 0
        failures.forgive("192.0.2.3")
    for number in range(SIGN_IN_FAILURES_MAX):
        assert failures.admit(f"2001:db8::{number + 1}") == 0
    assert failures.admit("2001:db8::ffff") > 0, "one client may have all addresses of a network"
    for number in range(SIGN_IN_ADDRESSES_MAX + 9):
        failures.admit(f"10.0.{number // 250}.{number % 250}")
    assert failures.admit("192.0.2.1") == 0, "the oldest addresses are forgotten"


def test_sign_ins_and_calls_share_one_limit_for_guesses() -> None:
    """Guesses by sign-in and by call are counted together; then even the right token must wait, but no session."""
    with make_server(control_token=TOKEN) as server:

        def call(token: str | None) -> requests.Response:
            headers = {"Authorization": f"Bearer {token}"} if token is not None else {}
            return requests.get(f"{server.url}/control/projects/", headers=headers)

        session, _ = sign_in(server, TOKEN)
        statuses = [call(token).status_code for token in [TOKEN, None] * SIGN_IN_FAILURES_MAX]
        assert statuses == [200, 401] * SIGN_IN_FAILURES_MAX
        statuses = [sign_in(server, f"guess-{number}")[1].status_code for number in range(5)]
        statuses += [call(f"guess-{number}").status_code for number in range(6)]
        assert statuses == [401] * SIGN_IN_FAILURES_MAX + [429]
        _, page = sign_in(server, TOKEN)
        assert "too-early" in Page(page).ids
        for refused in (call(TOKEN), page):
            assert refused.status_code == 429
            assert 0 < int(refused.headers["Retry-After"]) <= SIGN_IN_PAUSE_SECONDS
        assert session.get(f"{server.url}/dashboard/").status_code == 200
        assert "sign-in" not in session.get(f"{server.url}/dashboard/").url


def test_a_cookie_ends_after_twelve_hours(guarded: Server, two_projects: list[tuple[str, str]]) -> None:
    """The server checks the time itself; a later sign-in to another project does not extend the first."""
    (first, key), (second, other_key) = two_projects
    services, clock = guarded.registry.services, WallClock()
    before, services.real = services.real, clock.real()
    try:
        session, _ = sign_in(guarded, key)
        for cookie in session.cookies:
            cookie.expires = None  # as a stolen cookie, which no browser deletes
        clock.seconds += 6 * 60 * 60
        sign_in(guarded, other_key, session)
        clock.seconds += 6 * 60 * 60 + 1
        pages = [session.get(f"{guarded.url}/dashboard/{one}/orders/") for one in (first, second)]
        assert ["sign-in" in Page(page).ids for page in pages] == [True, False]
    finally:
        services.real = before


def test_a_key_opens_its_own_project(guarded: Server, two_projects: list[tuple[str, str]]) -> None:
    """The key opens only its project, and the cookie is protected and has no key."""
    (first, key), (second, other_key) = two_projects
    session, answer = sign_in(guarded, key)
    assert answer.url.endswith(f"/dashboard/{first}/orders/")
    cookie = answer.history[0].headers["Set-Cookie"]
    for part in ("HttpOnly", "SameSite=Strict", "Path=/dashboard"):
        assert part in cookie
    assert key not in cookie + answer.text
    assert "sign-in" in Page(session.get(f"{guarded.url}/dashboard/{second}/orders/")).ids
    _, answer = sign_in(guarded, other_key, session, next=f"/dashboard/{second}/settings/")
    assert answer.url.endswith(f"/{second}/settings/")
    chooser = session.get(f"{guarded.url}/dashboard/").text
    assert "First" in chooser
    assert "Second" in chooser
    session.post(f"{guarded.url}/dashboard/sign-out/", headers={"Origin": guarded.url})
    assert "sign-in" in Page(session.get(f"{guarded.url}/dashboard/{first}/orders/")).ids


def test_the_control_token_opens_all(guarded: Server, two_projects: list[tuple[str, str]]) -> None:
    """The control token opens all projects; a wrong one is refused with a message."""
    session, _ = sign_in(guarded, TOKEN)
    for project_id, _ in two_projects:
        assert session.get(f"{guarded.url}/dashboard/{project_id}/orders/").status_code == 200
    for wrong in ("", "no-such-key", TOKEN[:-1], "é", "\x00"):
        _, answer = sign_in(guarded, wrong)
        assert answer.status_code == 401
        assert "wrong" in Page(answer).ids
        assert COOKIE not in answer.cookies


def test_a_forged_cookie_opens_nothing(guarded: Server, two_projects: list[tuple[str, str]]) -> None:
    """A cookie with a wrong or missing signature is refused."""
    (first, key), _ = two_projects
    session, _ = sign_in(guarded, key)
    sign = next(cookie.value or "" for cookie in session.cookies if cookie.name == COOKIE).rpartition("|")[2]
    for value in ("*|", "*|0", "|", "*", "{id}|00", "{id},*|{sign}", "é|é"):
        forged = value.format(id=first, sign=sign.strip('"'))
        headers: dict[str, str | bytes] = {**HTML, "Cookie": f'{COOKIE}="{forged}"'.encode()}
        answer = requests.get(f"{guarded.url}/dashboard/{first}/orders/", headers=headers)
        assert "sign-in" in Page(answer).ids, value


OUTSIDE = ("https://evil.example/", "//evil.example/", "/\\evil.example", "/v1/orders/", "javascript:x")
BROKEN = ("//[", "http://[", "/dashboard/x\r\nSet-Cookie: a=b", "/dashboard/\x7f")


def test_redirects_stay_within_the_dashboard(guarded: Server, two_projects: list[tuple[str, str]]) -> None:
    """After sign-in and after a form the browser is redirected within the dashboard only."""
    (project_id, key), _ = two_projects
    session, _ = sign_in(guarded, key)
    url = f"{guarded.url}/dashboard/{project_id}"
    token = Page(session.get(f"{url}/settings/")).forms[-1].fields["token"]
    for address in (*OUTSIDE, *BROKEN):
        _, answer = sign_in(guarded, key, next=address, allow_redirects=False)
        assert answer.headers["Location"] == f"/dashboard/{project_id}/orders/"
        data, headers = {"token": token, "by": "PT1M", "back": address}, {"Origin": guarded.url}
        moved = session.post(f"{url}/clock/", data=data, headers=headers, allow_redirects=False)
        assert moved.headers["Location"].partition("?")[0].endswith("/orders/")


FOREIGN = [{"Origin": "https://evil.example"}, {"Origin": "null"}, {"Host": "evil.example"}]


@pytest.mark.parametrize("headers", FOREIGN)
def test_other_sites_are_refused(sandbox: Sandbox, headers: dict[str, str]) -> None:
    """Foreign origins and hosts are refused even without sign-in."""
    dashboard = Dashboard(sandbox)
    token = dashboard.token
    order = sandbox.place(card())
    answer = requests.post(f"{dashboard.base}reset/", data={"token": token}, headers=headers)
    assert answer.status_code == 403
    answer = requests.get(f"{dashboard.base}orders/", headers=headers)
    assert answer.status_code == 403
    assert sandbox.read(order)["status"] == "new"


FOREIGN_FORM = "This form does not come from this sandbox. Open the sandbox's own page and click there."


def test_a_refused_form_says_where_it_comes_from(sandbox: Sandbox, project: Callable[[], Sandbox]) -> None:
    """Every form of a page distinguishes foreign forms from those of another project and before a restart."""
    with make_server(seed=1) as server:
        before_restart = Dashboard(Sandbox(server)).token
    order, browser = sandbox.authorized(), Dashboard(sandbox)
    page = browser.open(f"orders/{order['id']}/")
    forms = [form for form in page.forms if "token" in form.fields]
    assert len(forms) > 5
    for token, message in {
        "": FOREIGN_FORM,
        "0" * 64: FOREIGN_FORM,
        Dashboard(project()).token: "This form belongs to another project. Load the page of this project",
        before_restart: "The server was restarted. Load the page and click again.",
    }.items():
        for form in forms:
            refused = browser.send(form, {"token": token}, page, 403)
            assert refused.ids["refused"] == "Load the page again"
            assert message in refused.text


def test_only_the_control_token_creates_projects(
    guarded: Server, two_projects: list[tuple[str, str]]
) -> None:
    """A browser that has signed in with an API key sees no form, and cannot send one."""
    for secret, may_create in ((two_projects[0][1], False), (TOKEN, True)):
        session, _ = sign_in(guarded, secret)
        page = Page(session.get(f"{guarded.url}/dashboard/?all=1"))
        assert ("new-project" in page.ids) is may_create
        answer = session.post(
            f"{guarded.url}/dashboard/", data={"name": "x"}, headers={"Origin": guarded.url}
        )
        assert answer.status_code == 403


def test_open_pages_get_events(sandbox: Sandbox) -> None:
    """Open pages receive only a short event that tells them to reload."""
    dashboard = Dashboard(sandbox)
    with dashboard.http.get(f"{dashboard.base}events/?after=0", stream=True) as stream:
        assert stream.headers["Content-Type"].startswith("text/event-stream")
        sandbox.place(card())
        lines = stream.iter_lines(chunk_size=1, decode_unicode=True)
        assert next(line for line in lines if line.startswith("event: ")) == "event: changed"
        assert next(line for line in lines if line.startswith("data: ")) == "data: {}"
