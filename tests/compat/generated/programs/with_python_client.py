"""Drives a payment with the client of openapi-python-client: python with_python_client.py URL."""

import sys
from base64 import b64encode

from sandbox import AuthenticatedClient, Client
from sandbox.api.control_clock import control_advance
from sandbox.api.control_orders import control_act
from sandbox.api.control_projects import projects_new_project
from sandbox.api.merchant_api import api_get_order, api_post_order, api_post_refund
from sandbox.models import ActRequest, AdvanceRequest, NewProjectRequest, OrderRequest, RefundRequest

url = sys.argv[1]
project = projects_new_project.sync(client=Client(url), body=NewProjectRequest(clock="frozen"))
client = AuthenticatedClient(url, b64encode(f"{project.api_key}:".encode()).decode(), prefix="Basic")

card = {"payment_method": "credit-card", "capture_mode": "delayed", "expiration_period": "P7D"}
wanted = OrderRequest.from_dict({"currency": "EUR", "amount": 1295, "transactions": [card]})
order = api_post_order.sync(client=client, body=wanted)
print("created", order.status.value, order.transactions[0].payment_method)

control_act.sync(order.id, client=client, body=ActRequest.from_dict({"actor": "customer", "action": "pay"}))
paid = api_get_order.sync(order.id, client=client)
print(f"paid {paid.status.value}, capturable: {str(paid.transactions[0].is_capturable).lower()}")

advance = control_advance.sync(client=client, body=AdvanceRequest(by="P7D"))
print("a week later:", advance.events[0].kind)

refund = api_post_refund.sync(order.id, client=client, body=RefundRequest(amount=500))
print("refunded", refund.amount)

refused = api_post_refund.sync(order.id, client=client, body=RefundRequest(amount=5000))
print("refused", refused.error.status, refused.error.type_)
