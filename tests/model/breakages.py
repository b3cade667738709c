"""Subtle changes to the engine, each of which breaks a sentence of the specification.

The author of the first forty had seen neither the model nor its tests.
"""

from typing import Final, NamedTuple


class Breakage(NamedTuple):
    """One subtle change; an exploration from ``where``, a start state or a method, notices it."""

    rule: str
    sentence: str
    path: str
    old: str
    new: str
    where: str


BREAKAGES: Final = (
    Breakage(
        "SET-42",
        "A partly captured authorization stays capturable after it has expired.",
        "orders/authorization.py",
        "if self.is_over or (now >= self.expires_at and not self.delayed):",
        "if not self.captured_cents and (self.is_over or (now >= self.expires_at and not self.delayed)):",
        "an expired authorization with a capture",
    ),
    Breakage(
        "SET-47",
        "A void by lines is refused after a capture by amount (voids are free in style).",
        "orders/authorization.py",
        ("self._refuse_expired(now)\n        return self._append_lines(EntryKind.VOIDED"),
        (
            "self._refuse_expired(now)\n"
            "        self._refuse_style(EntryStyle.LINES)\n"
            "        return self._append_lines(EntryKind.VOIDED"
        ),
        "a partly captured invoice",
    ),
    Breakage(
        "END-11",
        "A capture in full is refused once a partial capture was made.",
        "orders/authorization.py",
        ("self._refuse_capture(now)\n        return self._append_remainder(EntryKind.CAPTURED, now)"),
        (
            "self._refuse_capture(now)\n"
            "        self._refuse_style(EntryStyle.FULL)\n"
            "        return self._append_remainder(EntryKind.CAPTURED, now)"
        ),
        "a partly captured invoice",
    ),
    Breakage(
        "CAP-07",
        "A delayed capture also captures the voided amount.",
        "orders/authorization.py",
        ('(CAP-05, CAP-07)."""\n        return self._append_remainder(EntryKind.CAPTURED, now)'),
        (
            '(CAP-05, CAP-07)."""\n        return self._replace(entries=())._append_remainder(EntryKind.CAPTURED, now)'
        ),
        "a delayed authorization 20 minutes after the order's creation",
    ),
    Breakage(
        "CAP-05",
        "A delayed capture counts from the order's creation, not from the customer's authorization.",
        "operations/steps.py",
        ("expires_at = Period.parse(attempt.expiration_period).after(edit.now)\n    delayed"),
        (
            'start = attempt.created if attempt.capture_mode == "delayed" else edit.now\n'
            "    expires_at = Period.parse(attempt.expiration_period).after(start)\n"
            "    delayed"
        ),
        "a delayed authorization 20 minutes after the order's creation",
    ),
    Breakage(
        "CAP-08",
        "A void between two captures allows the other style for the second capture.",
        "orders/authorization.py",
        "e.style for e in self.entries if e.taken is",
        "e.style for e in self.entries[-1:] if e.taken is",
        "an authorization with a captured and a voided line",
    ),
    Breakage(
        "STA-20",
        "A voided quantity of a line can still be captured by lines.",
        "orders/authorization.py",
        ("taken = add_quantities(entry.quantities for entry in self.entries)\n"),
        ("taken = self.quantities(EntryKind.CAPTURED)\n"),
        "an authorization with a captured and a voided line",
    ),
    Breakage(
        "VOID-02",
        "A void of more than the remaining amount voids the remainder instead of being refused.",
        "orders/authorization.py",
        "return self._append(EntryKind.VOIDED, EntryStyle.AMOUNT, amount_cents, (), description, now)",
        (
            "return self._append(\n"
            "            EntryKind.VOIDED, EntryStyle.AMOUNT, min(amount_cents, self.remaining_cents), (), description, now\n"
            "        )"
        ),
        "a delayed authorization",
    ),
    Breakage(
        "SET-42",
        "is_capturable stays true after an authorization has expired.",
        "orders/authorization.py",
        "return not self.is_over and self.remaining_cents > 0",
        "return self.remaining_cents > 0",
        "an expired authorization with a capture",
    ),
    Breakage(
        "SET-43",
        "A void in full cancels the transaction but not the order.",
        "operations/authorizations.py",
        "move_both(edit, order, transaction, Trigger.CANCEL)",
        "edit.move_transaction(transaction, Trigger.CANCEL)",
        "a delayed authorization",
    ),
    Breakage(
        "SET-40",
        "An invoice-later-b order is completed by its first partial capture.",
        "operations/authorizations.py",
        "if authorization is None or authorization.remaining_cents:",
        "if authorization is None or (authorization.remaining_cents and not authorization.captured_cents):",
        "a partly captured invoice",
    ),
    Breakage(
        "SET-40",
        "An invoice-later-b order captured in part and voided for the rest stays accepted.",
        "operations/authorizations.py",
        "elif transaction.status == TransactionStatus.ACCEPTED:",
        "elif transaction.status == TransactionStatus.ACCEPTED and not authorization.voided_cents:",
        "a partly captured invoice",
    ),
    Breakage(
        "SET-42",
        "A partly captured invoice-later-b order stays accepted when its authorization expires.",
        "operations/due.py",
        "elif attempt.status == TransactionStatus.ACCEPTED:",
        "elif attempt.status == TransactionStatus.ACCEPTED and order.is_hosted:",
        "a partly captured invoice",
    ),
    Breakage(
        "SET-41",
        "When an unused authorization expires, the order expires but its transaction stays completed.",
        "operations/due.py",
        "move_both(edit, order, attempt, Trigger.LAPSE)",
        "edit.move_order(order, Trigger.LAPSE)",
        "an authorization a second before the order's expiry",
    ),
    Breakage(
        "ORD-12",
        "A hosted order whose last attempt failed never expires.",
        "operations/due.py",
        "return attempt is None or attempt.status != TransactionStatus.PENDING",
        "return attempt is None or attempt.status not in (TransactionStatus.PENDING, TransactionStatus.ERROR)",
        "a hosted page with a failed attempt",
    ),
    Breakage(
        "SET-18",
        "A failed attempt on the hosted page fails the order, so the customer cannot choose again.",
        "operations/steps.py",
        "if can_move(order, step.trigger) and (step.trigger in SUCCESS_TRIGGERS or not order.is_hosted):",
        (
            "if can_move(order, step.trigger) and (\n"
            "        step.trigger in SUCCESS_TRIGGERS or step.trigger is Trigger.FAIL or not order.is_hosted\n"
            "    ):"
        ),
        "a hosted page with a failed attempt",
    ),
    Breakage(
        "SET-63",
        "A second bank credit that completes the amount leaves the transfer pending.",
        "methods/bank_transfer.py",
        "if amount_cents < outstanding_cents:",
        "if amount_cents < attempt.amount_cents:",
        "a half-paid transfer",
    ),
    Breakage(
        "SET-63",
        "A bank credit after expiry completes the transaction but not the order.",
        "orders/statuses.py",
        "_O.EXPIRED: {Trigger.PAY: _O.COMPLETED},  # a late bank transfer",
        "_O.EXPIRED: {},",
        "an expired transfer",
    ),
    Breakage(
        "STA-12",
        "An actual recurring order is created completed instead of processing.",
        "methods/credit_card.py",
        'if use == ONE_CLICK and "after" not in attempt.plan:',
        'if "after" not in attempt.plan:',
        "a recurring series a second before its year ends",
    ),
    Breakage(
        "HOOK-02",
        "No webhook is sent when an order expires.",
        "projects/edit.py",
        (
            "            if moved.subject_id not in self._created:\n"
            "                yield moved.subject_id, moved.after"
        ),
        (
            "            if moved.subject_id not in self._created and moved.after != OrderStatus.EXPIRED:\n"
            "                yield moved.subject_id, moved.after"
        ),
        "an expired transfer",
    ),
    Breakage(
        "SET-55",
        "An order that is created in status error sends no webhook.",
        "projects/edit.py",
        "            if status != OrderStatus.NEW:",
        "            if status not in (OrderStatus.NEW, OrderStatus.ERROR):",
        "pay-later-a",
    ),
    Breakage(
        "HOOK-04",
        "The project's webhook_url overrides the order's.",
        "projects/edit.py",
        "url = order.webhook_url or self.settings.webhook_url or self.settings.forward_to",
        "url = self.settings.webhook_url or order.webhook_url or self.settings.forward_to",
        "an order with its own webhook URL",
    ),
    Breakage(
        "LIM-06",
        "An 11th delivery is attempted.",
        "orders/webhooks.py",
        "if attempt.number >= ATTEMPTS_MAX:",
        "if attempt.number > ATTEMPTS_MAX:",
        "a transfer while the shop is down",
    ),
    Breakage(
        "HOOK-11",
        "Retries after the third delivery are four minutes apart.",
        "orders/webhooks.py",
        "next_at = RETRY_AFTER.after(attempt.at)",
        'next_at = Period.parse("PT2M" if attempt.number < 3 else "PT4M").after(attempt.at)',
        "a transfer while the shop is down",
    ),
    Breakage(
        "HOOK-02",
        "No webhook is sent when a hosted order goes from new to processing.",
        "projects/edit.py",
        (
            "            if moved.subject_id not in self._created:\n"
            "                yield moved.subject_id, moved.after"
        ),
        (
            "            if moved.subject_id not in self._created and not (\n"
            '                moved.after == "processing" and self.orders[moved.subject_id].is_hosted\n'
            "            ):\n"
            "                yield moved.subject_id, moved.after"
        ),
        "a hosted page with a failed attempt",
    ),
    Breakage(
        "IFM-01",
        "A stale If-Match is ignored once the order is authorized or completed.",
        "projects/edit.py",
        "if if_match is not None and not if_match(etag):",
        "if if_match is not None and self.epoch.find_order(order_id).is_open and not if_match(etag):",
        "a partly captured invoice",
    ),
    Breakage(
        "SET-33",
        "A refund ignores If-Match.",
        "operations/refund.py",
        "order = edit.order_if_match(order_id, if_match)",
        "order = edit.order(order_id)",
        "a partly refunded payment",
    ),
    Breakage(
        "SET-52",
        "PUT of the amount does not change the amount of an open transaction with a capture mode.",
        "operations/update.py",
        "attempt.amount_cents = order.amount_cents if attempt.is_open else attempt.amount_cents",
        (
            "attempt.amount_cents = (\n"
            "            order.amount_cents if attempt.is_open and not attempt.capture_mode else attempt.amount_cents\n"
            "        )"
        ),
        "a screening that needs time",
    ),
    Breakage(
        "SET-51",
        "PUT of the description of a completed order is refused.",
        "operations/update.py",
        "if not changes.keys().isdisjoint(SUM_KEYS):",
        "if not changes.keys().isdisjoint(SUM_KEYS) or (changes and order.completed is not None):",
        "a partly refunded payment",
    ),
    Breakage(
        "SET-49",
        "The amount of a failed refund cannot be refunded again.",
        "orders/refunds.py",
        "sum(refund.amount_cents for refund in order.refunds if not refund.failed)",
        "sum(refund.amount_cents for refund in order.refunds)",
        "a refund that will fail",
    ),
    Breakage(
        "SET-49",
        "A partly captured order can be refunded for more than was captured.",
        "orders/refunds.py",
        "return order.received_cents - sum(",
        "return (order.amount_cents if order.received_cents else 0) - sum(",
        "a partly captured invoice",
    ),
    Breakage(
        "SET-49",
        "A refund without amount and lines requests the whole captured amount, not the remaining amount.",
        "orders/refunds.py",
        "requested_cents = remaining_cents if amount_cents is None else amount_cents",
        "requested_cents = order.received_cents if amount_cents is None else amount_cents",
        "a partly refunded payment",
    ),
    Breakage(
        "SET-50",
        "A partly captured order can be cancelled.",
        "operations/cancel.py",
        ("    if order.received_cents:\n"),
        ("    if order.received_cents >= order.amount_cents:\n"),
        "a partly captured invoice",
    ),
    Breakage(
        "SET-50",
        "Cancelling an authorized order does not void its amount.",
        "operations/cancel.py",
        "attempt.authorization = attempt.authorization.void_remainder(now=edit.now)",
        "attempt.authorization = attempt.authorization.ended()",
        "an authorization a second before the order's expiry",
    ),
    Breakage(
        "QR-13",
        "A one-off QR code can be used twice.",
        "orders/qr.py",
        "if self.one_off and self.scans:",
        "if self.one_off and self.scans > 1:",
        "a scanned QR code",
    ),
    Breakage(
        "QR-17",
        "A QR code for many uses can be used after its expiration.",
        "orders/qr.py",
        "if now >= self.expires_at:",
        "if now >= self.expires_at and self.one_off:",
        "a QR code for many scans a second before it expires",
    ),
    Breakage(
        "SET-37",
        "A pay-later-a order whose screening needed time and passed stays processing instead of going back to new.",
        "orders/statuses.py",
        "Trigger.PASS: _O.NEW,",
        "Trigger.PASS: _O.PROCESSING,",
        "a screening that needs time",
    ),
    Breakage(
        "ERR-02",
        "A pay-later-a order that is declined after it needed time ends in error instead of cancelled.",
        "methods/pay_later_a.py",
        ("if action.name == DECLINE:\n            return [decline_move(action.reason)]"),
        ("if action.name == DECLINE:\n            return [error_move(action.reason)]"),
        "a screening that needs time",
    ),
    Breakage(
        "LDET-03",
        "order_line_details loses the voided quantities once nothing is left.",
        "web/answers/order.py",
        ('    yield "captured", captured\n    yield "voided", voided'),
        (
            '    yield "captured", captured\n'
            "    if authorization.remaining_cents:\n"
            '        yield "voided", voided'
        ),
        "an authorization with a captured and a voided line",
    ),
    Breakage(
        "SET-62",
        "A pending bank transfer never expires.",
        "operations/attempts.py",
        "if attempt.is_open and attempt.status != TransactionStatus.PROCESSING:",
        "if attempt.status == TransactionStatus.NEW:",
        "an expired transfer",
    ),
    Breakage(
        "LIM-08",
        "A one-click payment is refused a year after the first.",
        "orders/cards.py",
        "if self.use == RECURRING and now >= ends_at:",
        "if now >= ends_at:",
        "a card stored for one-click payments a year later",
    ),
    Breakage(
        "ORD-25",
        "An order that fails later has no reason.",
        "operations/steps.py",
        "if step.trigger is Trigger.FAIL:",
        "if step.trigger is Trigger.FAIL and not order.version:",
        "a screening that needs time",
    ),
    Breakage(
        "ORD-20",
        "A cancelled order has a completed timestamp.",
        "orders/statuses.py",
        'if after == "completed" and subject.completed is None:',
        'if after in ("completed", "cancelled") and subject.completed is None:',
        "an order with its own webhook URL",
    ),
    Breakage(
        "ADET-01",
        "amount_details.captured shrinks by refunds.",
        "orders/order.py",
        "return min(self.received_cents, self.amount_cents)",
        "return min(self.received_cents, self.amount_cents) - sum(refund.amount_cents for refund in self.refunds)",
        "a partly refunded payment",
    ),
    Breakage(
        "SET-35",
        "A visited order does not expire with its attempt.",
        "operations/due.py",
        "if not order.is_hosted or (",
        "if (not order.is_hosted and not attempt.visited) or (",
        "an order with its own webhook URL",
    ),
    Breakage(
        "SET-45",
        "A delayed authorization without a period lasts seven days.",
        "operations/attempts.py",
        'expiration_period = requested.get("expiration_period", capabilities.default_expiration)',
        (
            "expiration_period = requested.get(\n"
            '        "expiration_period", "P7D" if requested.get("capture_mode") == "delayed" else capabilities.default_expiration\n'
            "    )"
        ),
        "credit-card",
    ),
    Breakage(
        "LIM-10",
        "One-click payments of a different amount are refused.",
        "methods/credit_card.py",
        "elif use == RECURRING and draft.amount_cents not in (None, credential.amount_cents):",
        "elif draft.amount_cents not in (None, credential.amount_cents):",
        "a card stored for one-click payments a year later",
    ),
    Breakage(
        "QR-07",
        "The largest amount of a QR code is refused.",
        "orders/qr.py",
        "amount_cents > high)",
        "amount_cents >= high)",
        "a QR code of 5 to 15 euros",
    ),
    Breakage(
        "HOOK-09",
        "A 4xx answer counts as delivered.",
        "orders/webhooks.py",
        "self.status is None or self.status < 400",
        "self.status is None or self.status < 500",
        "a transfer while the shop is down",
    ),
    Breakage(
        "CAP-08",
        "A capture by lines is possible after a capture by amount.",
        "orders/authorization.py",
        "if required not in (None, style):",
        "if required is EntryStyle.LINES is not style:",
        "a partly captured invoice",
    ),
    Breakage(
        "SET-50",
        "An order can be cancelled although its transfer is partly credited.",
        "operations/cancel.py",
        "if credited_cents:",
        "if credited_cents < 0:",
        "a half-paid transfer",
    ),
    Breakage(
        "CAP-03",
        "The period of an authorization counts from the creation of its order.",
        "operations/steps.py",
        "Period.parse(attempt.expiration_period).after(edit.now)",
        "Period.parse(attempt.expiration_period).after(attempt.created)",
        "an authorization a second before the order's expiry",
    ),
    Breakage(
        "LIM-08",
        "A recurring series lasts a moment more than a year.",
        "orders/cards.py",
        "self.use == RECURRING and now >= ends_at",
        "self.use == RECURRING and now > ends_at",
        "a recurring series a year later",
    ),
    Breakage(
        "QR-04",
        "The smallest amount of a QR code is refused.",
        "orders/qr.py",
        "if amount_cents < low or",
        "if amount_cents <= low or",
        "a QR code of 5 to 15 euros",
    ),
)
