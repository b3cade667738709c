"""A sign-in is valid at all servers of a company, and cannot be made from what the database shows."""

import hmac
from contextlib import ExitStack

import requests

from payment_sandbox.projects.registry import FIRST_PROJECT_ID
from tests.cluster.conftest import Company
from tests.support.payer import HTML, Page
from tests.support.servers import make_server

TOKEN = "the-control-token-of-the-company"
COOKIE = "sandbox_dashboard"


def opens(url: str, cookie: str) -> bool:
    """Return whether a cookie opens the first project at a server."""
    page = requests.get(f"{url}/dashboard/{FIRST_PROJECT_ID}/orders/", headers=HTML, cookies={COOKIE: cookie})
    return "sign-in" not in Page(page).ids


def test_no_value_in_the_database_signs_a_cookie(company: Company) -> None:
    """A reader of the database cannot sign a cookie that a server accepts, but a server with the token can."""
    with ExitStack() as stack:
        first, second, changed = (
            stack.enter_context(make_server(state=company.state, control_token=token))
            for token in (TOKEN, TOKEN, "a-changed-token")
        )
        answer = requests.post(
            f"{first.url}/dashboard/sign-in/",
            data={"secret": TOKEN},
            headers={"Origin": first.url},
            allow_redirects=False,
        )
        cookie = answer.cookies[COOKIE].strip('"')
        assert [opens(server.url, cookie) for server in (first, second, changed)] == [True, True, False]
        grants = cookie.rpartition("|")[0]
        values = [str(row[0]) for row in company.execute("SELECT body FROM sandbox_value")]
        assert values
        for value in values:
            assert TOKEN not in value
            for text in (f"dashboard cookie/{grants}", f"dashboard {grants}"):
                signature = hmac.new(value.encode(), text.encode(), "sha256").hexdigest()
                assert not opens(first.url, f"{grants}|{signature}")
