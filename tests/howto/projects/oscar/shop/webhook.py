import json

from django.db import transaction
from django.http import HttpResponse
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST
from oscar.core.loading import get_class, get_model

from shop import payments

NEW_STATUS = {
    "completed": "Authorised",
    "cancelled": "Cancelled",
    "expired": "Cancelled",
    "error": "Cancelled",
}


@csrf_exempt
@require_POST
def webhook(request):
    order_id = json.loads(request.body)["order_id"]
    paid = payments.call("GET", f"/orders/{order_id}/")
    with transaction.atomic():
        source = get_model("payment", "Source").objects.select_for_update().filter(reference=order_id).first()
        if source is None:  # the checkout is about to save the source, or the order is a refund
            return HttpResponse(status=204 if "is-refund" in paid.get("flags", []) else 503)
        status = NEW_STATUS.get(paid["status"])
        if status in source.order.available_statuses():
            if status == "Authorised":
                source.allocate(payments.euros(paid["amount"]))
            handler = get_class("order.processing", "EventHandler")()
            handler.handle_order_status_change(source.order, status)
    return HttpResponse(status=204)
