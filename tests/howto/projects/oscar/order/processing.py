from django.db import transaction
from oscar.apps.order import processing
from oscar.core.loading import get_model

from shop import payments


class EventHandler(processing.EventHandler):
    """Captures shipped lines, and refunds for a payment event "Refund"."""

    @transaction.atomic
    def handle_shipping_event(self, order, event_type, lines, line_quantities, **kwargs):
        event = super().handle_shipping_event(order, event_type, lines, line_quantities, **kwargs)
        self.consume_stock_allocations(order, lines, line_quantities)
        self.capture(order, lines, line_quantities)
        return event

    def capture(self, order, lines, line_quantities):
        captured, _ = get_model("order", "PaymentEventType").objects.get_or_create(name="Capture")
        amount = self.calculate_payment_event_subtotal(captured, lines, line_quantities)
        source = order.sources.get()
        payment = payments.call("GET", f"/orders/{source.reference}/")["transactions"][0]
        payments.call(
            "POST",
            f"/orders/{source.reference}/transactions/{payment['id']}/captures/amount/",
            {"amount": payments.cents(amount), "description": f"Order {order.number}"},
        )
        source.debit(amount)
        self.create_payment_event(order, captured, amount, lines, line_quantities)

    def handle_payment_event(self, order, event_type, amount, lines=None, line_quantities=None, **kwargs):
        if event_type.code == "refund":
            source = order.sources.get()
            refund = payments.call(
                "POST", f"/orders/{source.reference}/refunds/", {"amount": payments.cents(amount)}
            )
            source.refund(amount, reference=refund["id"])
        return super().handle_payment_event(order, event_type, amount, lines, line_quantities, **kwargs)
