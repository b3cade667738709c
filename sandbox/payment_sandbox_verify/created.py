"""The file that lists the orders created by verification runs, so that a later run can clean them up."""

import json
from pathlib import Path
from typing import Final

from platformdirs import user_state_path

FILE_NAME: Final = "verify-made.jsonl"


class CreatedOrders:
    """The open orders created on one server, oldest first.

    Each change appends a line to the file, so a crash loses no order. Without a file, the orders are only
    in memory. Unreadable lines are skipped.
    """

    def __init__(self, url: str, file: Path | None = None) -> None:
        self._url = url
        self.file = file
        self.orders: dict[str, None] = {}
        self.has_unknown_order = False  # whether a run ended before learning the id of an order

    def begin_request(self) -> None:
        """Record that a run is about to request an order; ``add`` or ``record_refusal`` follows."""
        self._write({"asked": "an order"})

    def record_refusal(self) -> None:
        """Record that the request created no order."""
        self._write({"refused": "it"})

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
        for line in self._lines():
            if line.get("url") == self._url:
                made, gone = line.get("made"), line.get("gone")
                self.has_unknown_order = "asked" in line
                if isinstance(made, str):
                    self.orders[made] = None
                self.orders.pop(gone or "", None)
        return list(self.orders)

    def _lines(self) -> list[dict[str, str]]:
        if self.file is None or not self.file.exists():
            return []
        lines = []
        for line in self.file.read_text(encoding="utf-8", errors="replace").splitlines():
            try:
                data = json.loads(line)
            except ValueError:
                continue
            if isinstance(data, dict):
                lines.append(data)
        return lines

    def _write(self, change: dict[str, str]) -> None:
        if self.file is None:
            return
        self.file.parent.mkdir(parents=True, exist_ok=True)
        with self.file.open("a", encoding="utf-8") as file:
            file.write(f"{json.dumps({'url': self._url, **change})}\n")

    def close(self) -> None:
        """Remove the file unless it still lists orders of some server."""
        open_orders: set[tuple[str, str]] = set()
        for line in self._lines():
            url = line.get("url", "")
            if "made" in line:
                open_orders.add((url, line["made"]))
            open_orders.discard((url, line.get("gone", "")))
        if self.file is not None and not open_orders:
            self.file.unlink(missing_ok=True)


def created_orders_file() -> Path:
    """Return the path of the file, in the user's state folder."""
    return user_state_path("payment-sandbox") / FILE_NAME
