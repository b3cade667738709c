"""A session that alters requests and responses."""

import json
from collections.abc import Callable
from typing import Any

import requests


class Exchange:
    """A request and its response, which an alteration changes in place."""

    def __init__(self, method: str, url: str, body: Any, response: requests.Response | None = None) -> None:
        self.method = method
        self.path = "/" + url.split("/", 3)[3]
        self.body = body
        self.response = response
        self.data: Any = None
        self.options: dict[str, Any] = {}

    @property
    def is_order(self) -> bool:
        return isinstance(self.data, dict) and "transactions" in self.data

    @property
    def error(self) -> dict[str, Any]:
        error: dict[str, Any] = self.data.get("error", {}) if isinstance(self.data, dict) else {}
        return error

    def reply(self, status: int, **error: Any) -> None:
        """Replace the response with an error, or change its status."""
        assert self.response is not None
        self.response.status_code = status
        if error:
            self.data = {"error": {"status": status, "violations": [], **error}}
        elif self.error:
            self.error["status"] = status


Alteration = Callable[[Exchange], object]


class AlteringSession(requests.Session):
    """A session that alters requests before it sends them and responses before it returns them."""

    def __init__(self, before: Alteration | None, after: Alteration | None) -> None:
        super().__init__()
        self.trust_env = False
        self.before, self.after = before, after

    def request(self, method: str, url: str, **options: Any) -> requests.Response:  # type: ignore[override]
        if "/v1/" not in url:
            return super().request(method, url, **options)
        data = options.get("data")
        try:
            body = json.loads(data) if data else None
        except ValueError:
            body = None
        exchange = Exchange(method, url, body)
        exchange.options = options
        if self.before is not None and isinstance(body, dict):
            sent = json.dumps(body)
            self.before(exchange)
            if json.dumps(body) != sent:
                options["data"] = json.dumps(body).encode()
        response = super().request(method, url, **options)
        if self.after is not None:
            exchange.response, exchange.data = response, _parse_json(response)
            self.after(exchange)
            response._content = b"" if exchange.data is None else json.dumps(exchange.data).encode()
        return response


def _parse_json(response: requests.Response) -> Any:
    try:
        return response.json()
    except ValueError:
        return None
