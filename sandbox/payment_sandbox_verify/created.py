"""The orders that runs of verify created: the file that lists them, and their clean-up."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from platformdirs import user_state_path

from payment_sandbox_verify.answer import CannotTell, NotVerified
from payment_sandbox_verify.samples import LINES, MARKER, line_quantity, lines_worth
from payment_sandbox_verify.steps import ORDERS_PATH

if TYPE_CHECKING:
    from payment_sandbox_verify.answer import ServiceAnswer
    from payment_sandbox_verify.service import Service

FILE_NAME: Final = "verify-made.jsonl"
ORDERS_PATTERN: Final = re.compile(r"/*(/v\d+)?/orders/?")
CREATING_METHODS: Final = ("POST", "PUT", "PATCH")
NOT_FOUND: Final = 404
REFUNDED_OR_VOIDED: Final = "refunded, or voided"
FINAL_STATUSES: Final = ("cancelled", "expired", "error")
NOTHING_TO_REFUND: Final = "NothingToRefund"
REFUND_EXCEEDS_CAPTURED: Final = "RefundExceedsCaptured"
AUTHORIZATION_EXPIRED: Final = "AuthorizationExpired"


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


def clean_up(service: "Service") -> dict[str, str]:
    """Cancel or refund all created orders; return what remains of each, or its problem, by order id."""
    remaining: dict[str, str] = {}
    service.is_interrupted = False
    for order_id in list(service.created_orders.orders):
        remainder = _clean_up_order(service, f"{ORDERS_PATH}{order_id}/")
        if remainder is not None:
            remaining[order_id] = remainder
        if remainder in (None, REFUNDED_OR_VOIDED):
            service.created_orders.remove(order_id)
    return remaining


def _clean_up_order(service: "Service", path: str) -> str | None:
    """Cancel, void or refund an order; return what remains or the problem, or None if the order has ended.

    What the order shows afterwards counts, not the answers.
    """
    try:
        is_deleted = service.call("DELETE", path).is_success
        order = service.call("GET", f"{path}?fields[]=amount_details")
        if order.at("status") in FINAL_STATUSES or order.status == NOT_FOUND:
            return None
        reserved, captured = _cents(order, "remaining"), _cents(order, "captured")
        if is_deleted:
            return f"its status is {order.at('status')!r} after a DELETE"
        void = {"description": MARKER, "amount": reserved}
        voids_path = f"{path}transactions/{order.at('transactions[-1].id')}/voids/amount/"
        voided = service.call("POST", voids_path, void) if reserved else order
        is_refunded = not captured or _refund_rest(service, path, captured)
        after = service.call("GET", order.path)
        still = 0 if voided.at("error.type") == AUTHORIZATION_EXPIRED else _cents(after, "remaining")
        problems = [f"{still} cents are reserved"] if reserved and still else []
        if not is_refunded or (captured and "has-refunds" not in after.list_at("flags")):
            problems.append(f"{captured} cents were paid, and not all of it is refunded")
        return ", ".join(problems) or REFUNDED_OR_VOIDED
    except (CannotTell, NotVerified) as error:
        return str(error)


def _refund_rest(service: "Service", path: str, captured: int) -> bool:
    """Refund the rest of the payment: in one refund, or line by line if lines were refunded before."""

    def refund(**portion: Any) -> "ServiceAnswer":
        return service.call("POST", f"{path}refunds/", {"description": MARKER, **portion})

    portions: list[dict[str, Any]] = [{}, {"amount": captured}, {"order_lines": lines_worth(captured)}]
    if any(_is_refund(refund(**each), NOTHING_TO_REFUND) for each in portions):
        return True
    for line in LINES:
        one = line_quantity(1, line["merchant_order_line_id"])
        answers = (refund(order_lines=one) for _ in range(line["quantity"]))
        refused = next((each for each in answers if not each.is_success), None)
        if refused is not None and not _is_refund(refused, NOTHING_TO_REFUND, REFUND_EXCEEDS_CAPTURED):
            return False
    return True


def _is_refund(answer: "ServiceAnswer", *harmless: str) -> bool:
    return answer.is_success or answer.at("error.type") in harmless


def _cents(order: "ServiceAnswer", name: str) -> int:
    """Return an amount of an order in cents, a number or a string; 0 if it is malformed."""
    text = str(order.at(f"amount_details.{name}"))
    return int(text) if text.isascii() and text.isdigit() else 0
