"""Calls of a running sandbox with the key of one project."""

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from payment_sandbox.client.clock import SandboxClock, given
from payment_sandbox.client.errors import SandboxError, plainly
from payment_sandbox.client.plain import plain
from payment_sandbox.client.transport import Transport
from payment_sandbox.serving.sessions import direct_session

if TYPE_CHECKING:
    import requests

REFUSED: Final = 400
JSON: Final = "application/json"
YAML: Final = "application/yaml"
TIMEOUT_SECONDS: Final = 90.0  # longer than any wait that the server allows


class Calls:
    """The part of ``SandboxClient`` that sends calls, and raises what the server refuses."""

    def __init__(
        self,
        base_url: str,
        api_key: str,
        *,
        session: Transport | None = None,
        control_token: str | None = None,
        timeout_seconds: float = TIMEOUT_SECONDS,
    ) -> None:
        """Call the server at ``base_url`` as the project of ``api_key``.

        Uses ``session`` if given, else its own session without proxies.
        """
        self._timeout_seconds = timeout_seconds
        self.base_url = base_url.rstrip("/")
        self.api_key = api_key
        self.clock = SandboxClock(self.call)
        self._control_token = control_token
        self._session = session or direct_session()

    def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        query: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Any:
        """Make any call of the merchant or control API; return the parsed body. Bytes are sent as YAML.

        Raises:
            SandboxError: the server refused the call.
        """
        answer = self._send(method, path, body, query, headers)
        refuse(answer)
        return answer.json() if answer.content else {}

    def exchange(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """Make any call; return the status and the parsed body, also if the server refused it."""
        answer = self._send(method, path, body)
        return answer.status_code, answer.json() if answer.content else None

    def _send(
        self,
        method: str,
        path: str,
        body: Any,
        query: Mapping[str, Any] | None = None,
        more_headers: Mapping[str, str] | None = None,
    ) -> Any:
        headers, auth = dict(more_headers or {}), (self.api_key, "")
        if path == "/control/projects/" and self._control_token is not None:
            headers, auth = {"Authorization": f"Bearer {self._control_token}"}, None  # type: ignore[assignment]
        data = body if body is None or isinstance(body, bytes) else json.dumps(body, default=plain).encode()
        if body is not None:
            headers["Content-Type"] = YAML if data is body else JSON
        try:
            return self._session.request(
                method,
                f"{self.base_url}{path}",
                data=data,
                params=given(**(query or {})),
                headers=headers,
                auth=auth,
                timeout=self._timeout_seconds,
                allow_redirects=False,
            )
        except OSError as error:  # all exceptions of requests are
            raise plainly(error, self.base_url) from None

    def close(self) -> None:
        """Close the connections, which clients created by this one share; the next call opens new ones."""
        self._session.close()


def refuse(answer: "requests.Response") -> None:
    """Raise the refusal of a call."""
    if answer.status_code < REFUSED:
        return
    try:
        error = answer.json().get("error", {})
    except ValueError:
        error = {}
    raise SandboxError(answer.status_code, error)
