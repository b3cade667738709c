"""What a client sends its calls with."""

from typing import Any, Protocol


class Transport(Protocol):
    """Sends the calls: a ``requests.Session`` or an equivalent."""

    def request(self, *arguments: Any, **options: Any) -> Any:
        """Send one call; the response has ``status_code``, ``content`` and ``json()``."""
        ...

    def get(self, *arguments: Any, **options: Any) -> Any:
        """Open a stream."""
        ...

    def close(self) -> None:
        """Close the connections."""
        ...
