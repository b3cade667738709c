"""A customer's browser in a shop of this process."""

from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qsl, urlencode, urlsplit

from werkzeug.test import Client, TestResponse

from payment_sandbox.orders.actions import CUSTOMER, Action
from payment_sandbox.projects.records import ASK, RETURN, VIA_PAGE
from payment_sandbox.testing.shops.bridge import bridged

if TYPE_CHECKING:
    from payment_sandbox.projects.project import Project

SHOP: Final = "http://testserver"


class Browser:
    """A customer's browser in the shop: it keeps cookies, and follows no redirect by itself.

    What it gets is a response of Werkzeug, with ``status_code``, ``text``, ``json`` and ``location``.
    """

    def __init__(self, app: Any, project: "Project") -> None:
        self._bridge = bridged(app)
        self._client = Client(self._bridge or app, TestResponse)
        self._project = project

    def get(self, path: str, **query: Any) -> TestResponse:
        """Open a page of the shop."""
        return self._ask("GET", path, query_string=query)

    def post(self, path: str, data: Any = None, **more: Any) -> TestResponse:
        """Submit a form of the shop; ``json=`` sends JSON instead of ``data``."""
        return self._ask("POST", path, data=data, **more)

    def double_click(self, path: str, data: Any = None, **more: Any) -> list[TestResponse]:
        """Submit a form twice at the same moment, as impatient customers do; both responses."""
        return self._together(lambda: self._ask("POST", path, data=data, **more), 2)

    def returns(self, order_id: str, tabs: int = 1) -> list[TestResponse]:
        """Come back from the payment page to the order's ``return_url``, in one tab or in several at once.

        Raises:
            ValueError: the order has no ``return_url``.
            Unknown: there is no such order.
        """
        return_url = self._project.find_order(order_id).return_url
        if not return_url:
            raise ValueError(f"order {order_id} has no return_url to come back to")
        with self._project.edit() as edit:
            edit.deed(Action(CUSTOMER, RETURN), VIA_PAGE, order_id)
        parts = urlsplit(return_url)
        query = {
            **dict(parse_qsl(parts.query)),
            "order_id": order_id,
            "project_id": self._project.project_id,
        }
        base = f"{parts.scheme}://{parts.netloc}"
        return self._together(
            lambda: self._client.get(parts.path or "/", query_string=urlencode(query), base_url=base), tabs
        )

    def close(self) -> None:
        """Stop what it runs on; the end of the test does."""
        if self._bridge is not None:
            self._bridge.close()

    def _ask(self, method: str, path: str, **how: Any) -> TestResponse:
        with self._project.edit() as edit:
            edit.deed(Action(CUSTOMER, ASK), VIA_PAGE, None, method=method, path=path)
        return self._client.open(path, method=method, base_url=SHOP, **how)

    def _together(self, ask: Any, count: int) -> list[TestResponse]:
        """Ask several times at the same moment, each on a thread of its own."""
        if count == 1:
            return [ask()]
        with ThreadPoolExecutor(count) as pool:
            asked = [pool.submit(copy_context().run, ask) for _ in range(count)]
        return [answer.result() for answer in asked]
