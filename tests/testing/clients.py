"""A shop's HTTP clients: each sends a request by itself, or without sockets through what a project offers."""

import asyncio
import http.client
import json
import urllib.error
import urllib.request
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from functools import partial
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

import httpx
import httpx2
import requests
import urllib3

from payment_sandbox.testing.project_fixture import PaymentSandbox

LONG_SECONDS: Final = 20
"""The time limit of a caller who must get an answer."""


class Sent(NamedTuple):
    """A request; with ``through``, the client uses the project's session, transport or interception."""

    method: str
    url: str
    key: str
    body: Any = None
    read_seconds: float = LONG_SECONDS
    through: PaymentSandbox | None = None

    @property
    def headers(self) -> dict[str, str]:
        """The headers for clients that make none."""
        return {"Content-Type": "application/json", **urllib3.make_headers(basic_auth=f"{self.key}:")}

    @property
    def data(self) -> bytes | None:
        """The body for clients that write no JSON."""
        return json.dumps(self.body).encode() if self.body is not None else None


Answer = tuple[int, bytes]
Client = Callable[[Sent], Answer]


def _options(library: Any, sent: Sent) -> dict[str, Any]:
    limits = library.Timeout(LONG_SECONDS, read=sent.read_seconds)
    transport = {} if sent.through is None else {"transport": sent.through.httpx_transport}
    return {"auth": (sent.key, ""), "timeout": limits, "follow_redirects": True, **transport}


def _by_httpx(library: Any, sent: Sent) -> Answer:
    with library.Client(**_options(library, sent)) as client:
        answer = client.request(sent.method, sent.url, json=sent.body)
        return answer.status_code, answer.content


def by_async_httpx(sent: Sent) -> Answer:
    """Send a request with httpx on an event loop."""

    async def send() -> Answer:
        async with httpx.AsyncClient(**_options(httpx, sent)) as client:
            answer = await client.request(sent.method, sent.url, json=sent.body)
            return answer.status_code, answer.content

    with ThreadPoolExecutor(1) as thread:  # Playwright leaves a loop on the test thread
        return thread.submit(asyncio.run, send()).result()


def by_urllib3(sent: Sent) -> Answer:
    """Send a request with urllib3."""
    limits = urllib3.Timeout(connect=LONG_SECONDS, read=sent.read_seconds)
    through = sent.through
    with nullcontext() if through is None else through.intercept(through.base_url):
        answer = urllib3.PoolManager().request(
            sent.method, sent.url, body=sent.data, headers=sent.headers, timeout=limits, retries=False
        )
    return answer.status, answer.data


def by_requests(sent: Sent) -> Answer:
    """Send a request with requests."""
    session: Any = sent.through.session if sent.through is not None else requests
    limits = (LONG_SECONDS, sent.read_seconds)
    answer = session.request(sent.method, sent.url, json=sent.body, auth=(sent.key, ""), timeout=limits)
    return answer.status_code, answer.content


def by_http_client(sent: Sent) -> Answer:
    """Send a request with http.client."""
    url = urlsplit(sent.url)
    connection = http.client.HTTPSConnection(url.netloc)
    connection.request(sent.method, url.path, sent.data, sent.headers)
    answer = connection.getresponse()
    content = answer.read()
    connection.close()
    return answer.status, content


def by_urllib_request(sent: Sent) -> Answer:
    """Send a request with urllib.request."""
    request = urllib.request.Request(sent.url, sent.data, sent.headers, method=sent.method)
    try:
        with urllib.request.urlopen(request, timeout=sent.read_seconds) as answer:
            return int(answer.status), answer.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read()


by_httpx: Client = partial(_by_httpx, httpx)
CLIENTS: Final[dict[str, Client]] = {
    "httpx": by_httpx,
    "httpx2": partial(_by_httpx, httpx2),
    "async httpx": by_async_httpx,
    "urllib3": by_urllib3,
    "requests": by_requests,
}
"""The clients that can also use a project's session, transport or interception."""

ALL_CLIENTS: Final = {**CLIENTS, "http.client": by_http_client, "urllib.request": by_urllib_request}
