"""Thirty-two mistakes of real integrations, each a change of the sock shop that its happy tests do not notice."""

from typing import Final, NamedTuple


class Edit(NamedTuple):
    """A change of one place in a file."""

    file: str
    right: str
    wrong: str


def shop(right: str, wrong: str) -> Edit:
    """A change of the shop."""
    return Edit("shop.py", right, wrong)


def payments(right: str, wrong: str) -> Edit:
    """A change of its calls."""
    return Edit("payments.py", right, wrong)


NO_JOB: Final = shop(
    "        for sale in self.sales:\n            if sale.status in",
    "        for sale in []:\n            if sale.status in",
)
NO_CANCEL: Final = shop("                self._give_up(sale, sale.payments[-1])", "                pass")
NO_ETAG_AT_CAPTURE: Final = payments(
    '"order_lines": _lines(lines)}, payment.etag)', '"order_lines": _lines(lines)})'
)
NO_ETAG_AT_REFUND: Final = payments('/refunds/", body, payment.etag)', '/refunds/", body)')
ALWAYS_CAPTURES: Final = shop(
    "sale.method == CARD and payment.captured_cents < price_of(parcel)", "sale.method == CARD"
)

NO_LOCK: Final = shop(
    "        self._warehouse = Lock()",
    "        from contextlib import nullcontext\n        self._warehouse = nullcontext()",
)

MISTAKES: Final[dict[str, tuple[Edit, ...]]] = {
    "trusts the webhook": (
        shop("        if payment.is_paid:\n            self", "        if True:\n            self"),
    ),
    "trusts the visit": (
        shop(
            '        if sale.status == "open":\n            return f"Sale {sale.number}: we',
            '        sale.status, sale.paid_with = "paid", request.args["order_id"]\n'
            '        if sale.status == "open":\n            return f"Sale {sale.number}: we',
        ),
    ),
    "counts the same news twice": (
        shop(
            "            if sale.paid_with is None:",
            "            if True:",
        ),
    ),
    "looks before it reads, and acts afterwards": (
        shop(
            "        payment = self._payments.read(payment_id)\n        if payment.is_refund",
            "        known = self.sales.of_payment(payment_id)\n"
            "        is_news = known is not None and known.paid_with is None\n"
            "        payment = self._payments.read(payment_id)\n        if payment.is_refund",
        ),
        shop(
            "            self._note_payment(sale, payment)",
            "            self._note_payment(sale, payment)\n"
            "            if is_news:\n"
            '                sale.mails.append("Your invoice.")',
        ),
    ),
    "ships on both of two clicks": (NO_LOCK, NO_ETAG_AT_CAPTURE, ALWAYS_CAPTURES),
    "refunds on both of two clicks": (shop("        if slip in sale.slips:", "        if not slip:"),),
    "refunds twice at the same moment": (
        NO_LOCK,
        NO_ETAG_AT_REFUND,
        shop("        sale.slips.append(slip)\n        try:", "        try:"),
        shop("            sale.slips.remove(slip)\n", ""),
        shop(
            "        self._note_refund(refund)\n",
            "        self._note_refund(refund)\n        sale.slips.append(slip)\n",
        ),
    ),
    "refunds again after a lost response": (
        payments(
            '        return self._call("POST", f"/v1/orders/{payment.order_id}/refunds/", body, payment.etag)',
            '        path = f"/v1/orders/{payment.order_id}/refunds/"\n'
            "        try:\n"
            '            return self._call("POST", path, body)\n'
            "        except PaymentServiceDown:\n"
            '            return self._call("POST", path, body)',
        ),
        shop(
            '            sale.refunds[refund.order_id] = refund.data["amount"] if refund.is_paid else 0',
            '            sale.refunds["all"] = sum(PRICES_CENTS[name] * n for name, n in sale.returned.items())',
        ),
    ),
    "creates again after a lost response": (
        payments(
            '        return self._call("POST", "/v1/orders/", order)',
            "        try:\n"
            '            return self._call("POST", "/v1/orders/", order)\n'
            "        except PaymentServiceDown:\n"
            '            return self._call("POST", "/v1/orders/", order)',
        ),
    ),
    "ships although the capture got no answer": (
        shop(
            '            return jsonify(problem="the payment service does not answer; try again"), 503',
            "            pass",
        ),
    ),
    "ships what was refused": (
        shop(
            "            return jsonify(problem=str(refused)), 409\n        except PaymentServiceDown:\n"
            '            return jsonify(problem="the payment service does not answer; try',
            "            pass\n        except PaymentServiceDown:\n"
            '            return jsonify(problem="the payment service does not answer; try',
        ),
        shop('        if sale.status != "paid" or sale', '        if sale.status == "shipped" or sale'),
    ),
    "waits for ever": (payments("timeout=TIMEOUT_SECONDS", "timeout=None"),),
    "says yes to a webhook that it could not handle": (
        NO_JOB,
        shop('            return "later, please", 503', '            return "", 204'),
    ),
    "has no second way to learn of a payment": (NO_JOB,),
    "gives up for good what expired": (
        shop(
            "        with self._news:",
            '        if sale.status == "lost":\n            return\n        with self._news:',
        ),
    ),
    "lets two tries be paid": (
        NO_CANCEL,
        shop("            self._payments.give_back(payment)", "            pass"),
    ),
    "forgets the first try": (
        NO_CANCEL,
        shop("payment_id in sale.payments)", "payment_id in sale.payments[-1:])"),
    ),
    "authorizes for too short": (shop('AUTHORIZED_FOR = "P14D"', 'AUTHORIZED_FOR = "P1D"'),),
    "counts in floating euros": (
        shop(
            'refund.data["amount"] if refund.is_paid else 0',
            'int(refund.data["amount"] / 100 * 1.1 / 1.1 * 100) if refund.is_paid else 0',
        ),
    ),
    "calls a refund done that may fail": (
        shop(' = refund.data["amount"] if refund.is_paid else 0', ' = refund.data["amount"]'),
    ),
    "writes the key to its log": (
        payments(
            "        headers = {",
            '        __import__("logging").warning("as %s", self._auth)\n        headers = {',
        ),
    ),
    "tells the key in its answers": (
        shop('return "later, please", 503', 'return f"no answer for {self._payments._auth}", 503'),
    ),
    "reads until it is paid": (
        shop(
            '            self._look(request.args["order_id"])\n        except',
            "            for _ in range(60):\n"
            '                self._look(request.args["order_id"])\n'
            '                if sale.status != "open":\n'
            "                    break\n        except",
        ),
    ),
    "answers webhooks with a redirect": (
        shop('        return "", 204', '        return "", 302, {"Location": "/thanks"}'),
    ),
    "fails on orders that it does not know": (
        shop(
            "        if sale is None:\n            return None",
            '        if sale is None:\n            raise KeyError("sale")',
        ),
    ),
    "ships what is not paid yet": (
        shop('        if sale.status != "paid" or sale', '        if sale.status == "shipped" or sale'),
    ),
    "ships with every visit": (
        shop(
            '        if sale.status == "open":\n            return f"Sale {sale.number}: we',
            '        if sale.status == "paid":\n            sale.parcels.append(sale.basket)\n'
            '        if sale.status == "open":\n            return f"Sale {sale.number}: we',
        ),
        shop(
            "            if sale.method == CARD and",
            "            if sale.method == CARD and sale.parcels.clear() is None and",
        ),
    ),
    "ships all, and captures a parcel": (
        shop("        sale.parcels.append(parcel)", "        sale.parcels.append(sale.basket)"),
    ),
    "takes a payment in progress for paid": (
        payments('("completed", "accepted")', '("completed", "accepted", "processing")'),
    ),
    "sends a parcel with every run of its job": (
        shop(
            "                for payment_id in sale.payments:",
            '                if sale.status == "paid":\n'
            "                    sale.parcels.append(sale.basket)\n"
            "                for payment_id in sale.payments:",
        ),
    ),
    "keeps what a customer paid twice in two tabs": (
        NO_CANCEL,
        shop(
            "        if sale.paid_with != payment.order_id:  # paid in two tabs\n"
            "            self._payments.give_back(payment)",
            "",
        ),
        shop(
            "            if sale.paid_with is None:",
            "            if True:",
        ),
    ),
    "looks only once in its job": (  # which only shows if the webhook is lost and that look fails, too
        shop(
            "                for payment_id in sale.payments:",
            "                if sale.tries > 100:\n"
            "                    continue\n"
            "                sale.tries += 100\n"
            "                for payment_id in sale.payments:",
        ),
    ),
}
