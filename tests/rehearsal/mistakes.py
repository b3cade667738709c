"""Mistakes of real integrations: each is an edit of the sock shop that its happy tests do not notice."""

from typing import Final, NamedTuple


class Edit(NamedTuple):
    """A replacement in one place of a file."""

    file: str
    right: str
    wrong: str


def edit_shop(right: str, wrong: str) -> Edit:
    """Return an edit of the shop."""
    return Edit("shop.py", right, wrong)


def edit_payments(right: str, wrong: str) -> Edit:
    """Return an edit of the shop's calls."""
    return Edit("payments.py", right, wrong)


NO_JOB: Final = edit_shop(
    "        for sale in self.sales:\n            if sale.status in",
    "        for sale in []:\n            if sale.status in",
)
NO_CANCEL: Final = edit_shop(
    "                self._cancel_attempt(sale, sale.payments[-1])", "                pass"
)
NO_ETAG_AT_CAPTURE: Final = edit_payments(
    '"order_lines": _lines(lines)}, payment.etag)', '"order_lines": _lines(lines)})'
)
NO_ETAG_AT_REFUND: Final = edit_payments('/refunds/", body, payment.etag)', '/refunds/", body)')
ALWAYS_CAPTURES: Final = edit_shop(
    "sale.method == CARD and payment.captured_cents < price_of(parcel)", "sale.method == CARD"
)

NO_LOCK: Final = edit_shop(
    "        self._shipping_lock = Lock()",
    "        from contextlib import nullcontext\n        self._shipping_lock = nullcontext()",
)

MISTAKES: Final[dict[str, tuple[Edit, ...]]] = {
    "trusts the webhook": (
        edit_shop("        if payment.is_paid:\n            self", "        if True:\n            self"),
    ),
    "trusts the customer's return": (
        edit_shop(
            '        if sale.status == "open":\n            return f"Sale {sale.number}: we',
            '        sale.status, sale.paid_with = "paid", request.args["order_id"]\n'
            '        if sale.status == "open":\n            return f"Sale {sale.number}: we',
        ),
    ),
    "handles the same status twice": (
        edit_shop(
            "            if sale.paid_with is None:",
            "            if True:",
        ),
    ),
    "decides before it reads the order": (
        edit_shop(
            "        payment = self._payments.read(payment_id)\n        if payment.is_refund",
            "        known = self.sales.of_payment(payment_id)\n"
            "        is_news = known is not None and known.paid_with is None\n"
            "        payment = self._payments.read(payment_id)\n        if payment.is_refund",
        ),
        edit_shop(
            "            self._record_payment(sale, payment)",
            "            self._record_payment(sale, payment)\n"
            "            if is_news:\n"
            '                sale.mails.append("Your invoice.")',
        ),
    ),
    "ships twice after a double click": (NO_LOCK, NO_ETAG_AT_CAPTURE, ALWAYS_CAPTURES),
    "refunds twice after a double click": (
        edit_shop("        if slip in sale.slips:", "        if not slip:"),
    ),
    "refunds twice concurrently": (
        NO_LOCK,
        NO_ETAG_AT_REFUND,
        edit_shop("        sale.slips.append(slip)\n        try:", "        try:"),
        edit_shop("            sale.slips.remove(slip)\n", ""),
        edit_shop(
            "        self._record_refund(refund)\n",
            "        self._record_refund(refund)\n        sale.slips.append(slip)\n",
        ),
    ),
    "refunds again after a lost response": (
        edit_payments(
            '        return self._call("POST", f"/v1/orders/{payment.order_id}/refunds/", body, payment.etag)',
            '        path = f"/v1/orders/{payment.order_id}/refunds/"\n'
            "        try:\n"
            '            return self._call("POST", path, body)\n'
            "        except PaymentServiceDown:\n"
            '            return self._call("POST", path, body)',
        ),
        edit_shop(
            '            sale.refunds[refund.order_id] = refund.data["amount"] if refund.is_paid else 0',
            '            sale.refunds["all"] = sum(PRICES_CENTS[name] * n for name, n in sale.returned.items())',
        ),
    ),
    "creates again after a lost response": (
        edit_payments(
            '        return self._call("POST", "/v1/orders/", order)',
            "        try:\n"
            '            return self._call("POST", "/v1/orders/", order)\n'
            "        except PaymentServiceDown:\n"
            '            return self._call("POST", "/v1/orders/", order)',
        ),
    ),
    "ships although the capture got no response": (
        edit_shop(
            '            return jsonify(problem="the payment service does not answer; try again"), 503',
            "            pass",
        ),
    ),
    "ships after a refused capture": (
        edit_shop(
            "            return jsonify(problem=str(refused)), 409\n        except PaymentServiceDown:\n"
            '            return jsonify(problem="the payment service does not answer; try',
            "            pass\n        except PaymentServiceDown:\n"
            '            return jsonify(problem="the payment service does not answer; try',
        ),
        edit_shop('        if sale.status != "paid" or sale', '        if sale.status == "shipped" or sale'),
    ),
    "waits forever": (edit_payments("timeout=TIMEOUT_SECONDS", "timeout=None"),),
    "acknowledges a webhook that it could not handle": (
        NO_JOB,
        edit_shop('            return "later, please", 503', '            return "", 204'),
    ),
    "relies on webhooks only": (NO_JOB,),
    "never revives an expired sale": (
        edit_shop(
            "        with self._payment_lock:",
            '        if sale.status == "lost":\n            return\n        with self._payment_lock:',
        ),
    ),
    "lets two attempts be paid": (
        NO_CANCEL,
        edit_shop("            self._payments.return_money(payment)", "            pass"),
    ),
    "forgets the first attempt": (
        NO_CANCEL,
        edit_shop("payment_id in sale.payments)", "payment_id in sale.payments[-1:])"),
    ),
    "authorizes for too short a time": (edit_shop('AUTHORIZED_FOR = "P14D"', 'AUTHORIZED_FOR = "P1D"'),),
    "calculates in floating-point euros": (
        edit_shop(
            'refund.data["amount"] if refund.is_paid else 0',
            'int(refund.data["amount"] / 100 * 1.1 / 1.1 * 100) if refund.is_paid else 0',
        ),
    ),
    "records a refund that may still fail": (
        edit_shop(' = refund.data["amount"] if refund.is_paid else 0', ' = refund.data["amount"]'),
    ),
    "writes the key to its log": (
        edit_payments(
            "        headers = {",
            '        __import__("logging").warning("as %s", self._auth)\n        headers = {',
        ),
    ),
    "exposes the key in its responses": (
        edit_shop('return "later, please", 503', 'return f"no answer for {self._payments._auth}", 503'),
    ),
    "polls until the order is paid": (
        edit_shop(
            '            self._refresh(request.args["order_id"])\n        except',
            "            for _ in range(60):\n"
            '                self._refresh(request.args["order_id"])\n'
            '                if sale.status != "open":\n'
            "                    break\n        except",
        ),
    ),
    "answers webhooks with a redirect": (
        edit_shop('        return "", 204', '        return "", 302, {"Location": "/thanks"}'),
    ),
    "fails on unknown orders": (
        edit_shop(
            "        if sale is None:\n            return None",
            '        if sale is None:\n            raise KeyError("sale")',
        ),
    ),
    "ships before the payment": (
        edit_shop('        if sale.status != "paid" or sale', '        if sale.status == "shipped" or sale'),
    ),
    "ships on every visit": (
        edit_shop(
            '        if sale.status == "open":\n            return f"Sale {sale.number}: we',
            '        if sale.status == "paid":\n            sale.parcels.append(sale.basket)\n'
            '        if sale.status == "open":\n            return f"Sale {sale.number}: we',
        ),
        edit_shop(
            "            if sale.method == CARD and",
            "            if sale.method == CARD and sale.parcels.clear() is None and",
        ),
    ),
    "ships everything but captures one parcel": (
        edit_shop("        sale.parcels.append(parcel)", "        sale.parcels.append(sale.basket)"),
    ),
    "treats a payment in progress as paid": (
        edit_payments('("completed", "accepted")', '("completed", "accepted", "processing")'),
    ),
    "ships a parcel on every run of its job": (
        edit_shop(
            "                for payment_id in sale.payments:",
            '                if sale.status == "paid":\n'
            "                    sale.parcels.append(sale.basket)\n"
            "                for payment_id in sale.payments:",
        ),
    ),
    "keeps a double payment from two tabs": (
        NO_CANCEL,
        edit_shop(
            "        if sale.paid_with != payment.order_id:  # paid in two tabs\n"
            "            self._payments.return_money(payment)",
            "",
        ),
        edit_shop(
            "            if sale.paid_with is None:",
            "            if True:",
        ),
    ),
    "reads an order only once in its job": (  # shows only if the webhook is lost and that read fails, too
        edit_shop(
            "                for payment_id in sale.payments:",
            "                if sale.attempt_count > 100:\n"
            "                    continue\n"
            "                sale.attempt_count += 100\n"
            "                for payment_id in sale.payments:",
        ),
    ),
}
