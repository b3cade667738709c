"""The file that lists the orders created by runs of verify, so that a later run can clean them up."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from platformdirs import user_state_path

FILE_NAME: Final = "verify-made.jsonl"
ORDERS_PATTERN: Final = re.compile(r"/*(/v\d+)?/orders/?")
CREATING_METHODS: Final = ("POST", "PUT", "PATCH")


def is_creation(method: str, path: str) -> bool:
    """Whether a call creates an order, or would if the server failed to refuse it."""
    return method in CREATING_METHODS and ORDERS_PATTERN.fullmatch(path) is not None


class CreatedOrders:
    """The open orders created on one server, oldest first.

    Each change appends a line to the file, so a crash loses no order whose answer arrived. Without a file,
    the orders are only in memory. Unreadable lines are skipped.
    """

    def __init__(self, url: str, file: Path | None = None) -> None:
        self._url = url
        self.file = file
        self.orders: dict[str, None] = {}

    def add(self, order_id: str) -> None:
        """Record a created order."""
        self.orders[order_id] = None
        self._write({"made": order_id})

    def remove(self, order_id: str) -> None:
        """Record that an order has been cleaned up."""
        if order_id in self.orders:
            del self.orders[order_id]
            self._write({"gone": order_id})

    def read(self) -> list[str]:
        """Load the orders of this server from the file, and return them."""
        self.orders = {order: None for url, order in self._open_orders() if url == self._url}
        return list(self.orders)

    def _open_orders(self) -> dict[tuple[str, str], None]:
        """Return the open orders of all servers, each with the URL of its server."""
        opened: dict[tuple[str, str], None] = {}
        for line in self._lines():
            url = line.get("url", "")
            if "made" in line:
                opened[url, line["made"]] = None
            opened.pop((url, line.get("gone", "")), None)
        return opened

    def _lines(self) -> Iterator[dict[str, str]]:
        if self.file is None or not self.file.exists():
            return
        for line in self.file.read_text(encoding="utf-8", errors="replace").splitlines():
            try:
                data = json.loads(line)
            except ValueError:
                continue
            if isinstance(data, dict) and all(isinstance(each, str) for each in data.values()):
                yield data

    def _write(self, change: dict[str, str]) -> None:
        if self.file is None:
            return
        self.file.parent.mkdir(parents=True, exist_ok=True)
        with self.file.open("a", encoding="utf-8") as file:
            file.write(f"{json.dumps({'url': self._url, **change})}\n")

    def close(self) -> None:
        """Remove the file unless it still lists orders of some server."""
        if self.file is not None and not self._open_orders():
            self.file.unlink(missing_ok=True)


def created_orders_file() -> Path:
    """Return the path of the file, in the user's state folder."""
    return user_state_path("payment-sandbox") / FILE_NAME
