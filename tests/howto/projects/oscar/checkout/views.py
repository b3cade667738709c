from django.urls import reverse
from oscar.apps.checkout import views
from oscar.core.loading import get_model

from shop import payments


class PaymentDetailsView(views.PaymentDetailsView):
    """Places the order as "Pending", and sends the customer to the payment page."""

    def get_initial_order_status(self, basket):
        return "Pending"

    def handle_payment(self, order_number, total, **kwargs):
        created = payments.call(
            "POST",
            "/orders/",
            {
                "currency": total.currency,
                "amount": payments.cents(total.incl_tax),
                "merchant_order_id": str(order_number),
                "return_url": self.request.build_absolute_uri(reverse("checkout:thank-you")),
                "webhook_url": self.request.build_absolute_uri(reverse("payments-webhook")),
                "transactions": [
                    {"payment_method": "credit-card", "capture_mode": "manual", "expiration_period": "P7D"}
                ],
            },
        )
        self.payment_url = created["transactions"][0]["payment_url"]
        source_type, _ = get_model("payment", "SourceType").objects.get_or_create(name="Payment service")
        source = get_model("payment", "Source")(
            source_type=source_type, currency=total.currency, reference=created["id"]
        )
        self.add_payment_source(source)

    def get_success_url(self):
        return f"https://{self.payment_url}"
