"""The webhook handler of a shop in Django that packs the goods once the payment is committed."""

import json

from django.db import transaction
from django.http import HttpResponse
from django.views.decorators.csrf import csrf_exempt
from shop import payments
from shop.models import Sale


@csrf_exempt
def webhook(request):
    learn(json.loads(request.body)["order_id"])
    return HttpResponse(status=204)


def learn(order_id):
    status = payments.call("GET", f"/v1/orders/{order_id}/")["status"]
    with transaction.atomic():
        sale = Sale.objects.filter(order_id=order_id, status="open")
        if status == "completed" and sale.update(status="paid"):
            transaction.on_commit(lambda: pack(order_id))


def pack(order_id):
    payments.call("GET", f"/v1/orders/{order_id}/")  # the address of the customer
    Sale.objects.filter(order_id=order_id, status="paid").update(status="packed")


def look():
    for sale in Sale.objects.filter(status="open"):
        learn(sale.order_id)
    for sale in Sale.objects.filter(status="paid"):
        pack(sale.order_id)


def sales(request):
    return HttpResponse(", ".join(f"{each.order_id} is {each.status}" for each in Sale.objects.all()))
