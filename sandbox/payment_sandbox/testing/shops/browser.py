"""A customer's browser for a shop in this process."""

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from http import HTTPStatus
from http.client import responses
from typing import Any, Final
from urllib.parse import parse_qsl, urlencode, urlsplit
from wsgiref.types import StartResponse

from werkzeug.test import Client, TestResponse

from payment_sandbox.orders.actions import CUSTOMER, Action
from payment_sandbox.orders.webhooks import WebhookRequest
from payment_sandbox.projects.journal import RETURN, SHOP_REQUEST, VIA_PAGE
from payment_sandbox.projects.project import Project
from payment_sandbox.testing.environments import body_of
from payment_sandbox.testing.loops import CALLING_LOOP, LoopThread
from payment_sandbox.testing.shops.asgi import RESPONSE_BODY, RESPONSE_START, AsgiExchange, AsgiShop, Message
from payment_sandbox.testing.shops.receiving import wrap_application
from payment_sandbox.testing.shops.shop_requests import watch_asgi, watch_wsgi

REQUEST_SECONDS_MAX: Final = 30.0
HEADER_PREFIX: Final = "HTTP_"
TRANSFER_ENCODING: Final = "HTTP_TRANSFER_ENCODING"  # dropped, because the body is no longer chunked


class _BrowserExchange(AsgiExchange):
    """A request with any method, and its whole response."""

    def __init__(self, application: Any, environ: dict[str, Any]) -> None:
        self._environ = environ
        headers = {
            name.removeprefix(HEADER_PREFIX).replace("_", "-"): str(value)
            for name, value in environ.items()
            if (name.startswith(HEADER_PREFIX) and name != TRANSFER_ENCODING) or name == "CONTENT_TYPE"
        }
        url = f"{environ['wsgi.url_scheme']}://{environ['HTTP_HOST']}{environ['PATH_INFO']}"
        super().__init__(application, WebhookRequest(url, headers, body_of(environ)), lambda status: None)
        self.headers: list[tuple[str, str]] = []
        self.pieces: list[bytes] = []

    def _scope(self) -> dict[str, Any]:
        query = self._environ.get("QUERY_STRING", "").encode("latin-1")
        return {**super()._scope(), "method": self._environ["REQUEST_METHOD"], "query_string": query}

    async def _send(self, message: Message) -> None:
        if message["type"] == RESPONSE_START:
            self.headers = [
                (name.decode("latin-1"), value.decode("latin-1")) for name, value in message["headers"]
            ]
        elif message["type"] == RESPONSE_BODY:
            self.pieces.append(message.get("body", b""))
        await super()._send(message)


class AsgiBridge:
    """A WSGI adapter for an ASGI application; all requests run concurrently on one event loop."""

    def __init__(self, application: Any) -> None:
        self._application = application
        self._loop: LoopThread | None = None

    def __call__(self, environ: dict[str, Any], start_response: StartResponse) -> Iterable[bytes]:
        """Answer one request, on an ``async`` test's loop or on the bridge's own loop."""
        exchange = _BrowserExchange(self._application, environ)
        (CALLING_LOOP.get() or self._own_loop()).run(exchange.run, REQUEST_SECONDS_MAX)
        start_response(f"{exchange.status} {responses.get(exchange.status or 0, '')}", exchange.headers)
        return exchange.pieces

    def _own_loop(self) -> LoopThread:
        self._loop = self._loop or LoopThread()
        return self._loop

    def close(self) -> None:
        """Stop the bridge's own loop."""
        if self._loop is not None:
            self._loop.close()


SHOP_ORIGIN: Final = "http://testserver"


class ErrorPage(Exception):
    """The shop answers with an error; the message contains the status."""


class Browser:
    """A customer's browser in the shop, with cookies but without automatic redirects.

    Responses are Werkzeug's, with ``status_code``, ``text``, ``json`` and ``location``.
    """

    def __init__(self, app: Any, project: Project) -> None:
        is_asgi = isinstance(wrap_application(app), AsgiShop)
        self._bridge = AsgiBridge(watch_asgi(app)) if is_asgi else None
        self._app = self._bridge or watch_wsgi(app)
        self._client = Client(self._app)
        self._project = project

    def get(self, path: str, **query: Any) -> TestResponse:
        """Open a page in the shop."""
        return self._send_request("GET", path, query_string=query)

    def post(self, path: str, data: Any = None, **more: Any) -> TestResponse:
        """Submit a form to the shop; ``json=`` sends JSON instead of ``data``."""
        return self._send_request("POST", path, data=data, **more)

    def double_click(self, path: str, data: Any = None, **more: Any) -> list[TestResponse]:
        """Submit a form twice at the same time, as impatient customers do; return both responses."""
        return self._send_together(lambda: self._send_request("POST", path, data=data, **more), 2)

    def returns(self, order_id: str, tabs: int = 1) -> list[TestResponse]:
        """Return from the payment page to the order's ``return_url``, in one tab or in several at once.

        Without a payment, the customer returns to ``failure_url``, if there is one.

        Raises:
            ValueError: the order has no such URL.
            Unknown: the order does not exist.
        """
        landing_url = self._project.find_order(order_id).landing_url
        if not landing_url:
            raise ValueError(f"order {order_id} has no return_url")
        with self._project.edit() as edit:
            edit.record_action(Action(CUSTOMER, RETURN), VIA_PAGE, order_id)
        parts = urlsplit(landing_url)
        query = {**dict(parse_qsl(parts.query)), "order_id": order_id, "project_id": self._project.project_id}
        base = f"{parts.scheme}://{parts.netloc}"
        return self._send_together(
            lambda: self._client.get(parts.path or "/", query_string=urlencode(query), base_url=base), tabs
        )

    def peek(self, url: str, cookies: str | None = None) -> str | None:
        """Request a page without a timeline entry; return its text if the status is 200.

        With ``cookies``, those of an earlier request, a redirection counts as a page, too.

        Raises:
            ErrorPage: the shop answers with an error (status 5xx).
        """
        parts = urlsplit(url)
        base = f"{parts.scheme}://{parts.netloc}" if parts.netloc else SHOP_ORIGIN
        client = Client(self._app, use_cookies=False)
        headers = {"Cookie": cookies} if cookies else {}
        answer = client.get(parts.path or "/", query_string=parts.query, base_url=base, headers=headers)
        try:
            if answer.status_code >= HTTPStatus.INTERNAL_SERVER_ERROR:
                raise ErrorPage(f"status {answer.status_code}")
            if cookies is not None and answer.location:
                return f"a redirection to {urlsplit(answer.location).path}"
            return answer.text if answer.status_code == HTTPStatus.OK else None
        finally:
            answer.close()

    def close(self) -> None:
        """Stop the browser's event loop, if any, at the end of the test."""
        if self._bridge is not None:
            self._bridge.close()

    def _send_request(self, method: str, path: str, **options: Any) -> TestResponse:
        with self._project.edit() as edit:
            edit.record_action(Action(CUSTOMER, SHOP_REQUEST), VIA_PAGE, None, method=method, path=path)
        return self._client.open(path, method=method, base_url=SHOP_ORIGIN, **options)

    def _send_together(self, send_request: Any, count: int) -> list[TestResponse]:
        if count == 1:
            return [send_request()]
        with ThreadPoolExecutor(count) as pool:
            answers = [pool.submit(copy_context().run, send_request) for _ in range(count)]
        return [answer.result() for answer in answers]
