import json

from django.db import transaction
from django.http import HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST

from shop import payments
from shop.models import Sale


@csrf_exempt
@require_POST
def checkout(request):
    order = payments.call(
        "POST",
        "/v1/orders/",
        {
            "currency": "EUR",
            "amount": 1295,
            "webhook_url": request.build_absolute_uri(reverse("webhook")),
            "transactions": [{"payment_method": request.POST.get("method", "credit-card")}],
        },
    )
    Sale.objects.get_or_create(order_id=order["id"])  # the webhook may have arrived before the response
    return redirect(payments.payment_page_url(order))


@csrf_exempt
@require_POST
def webhook(request):
    order_id = json.loads(request.body)["order_id"]
    status = payments.call("GET", f"/v1/orders/{order_id}/")["status"]
    with transaction.atomic():
        sale, _ = Sale.objects.select_for_update().get_or_create(order_id=order_id)
        if sale.status == "open" and status == "completed":
            sale.status = "paid"
            sale.save()
    return HttpResponse(status=204)
