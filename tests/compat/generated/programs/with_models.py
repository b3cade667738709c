"""Drives a payment with the models of datamodel-code-generator: python with_models.py URL."""

import sys

import models
import requests

url, session = sys.argv[1], requests.Session()


def call(path: str, body: models.BaseModel, answer: type[models.BaseModel]) -> models.BaseModel:
    """Send one model, and read another."""
    sent = body.model_dump_json(exclude_unset=True, by_alias=True)
    response = session.post(f"{url}{path}", data=sent, headers={"Content-Type": "application/json"})
    return (answer if response.ok else models.ErrorAnswer).model_validate_json(response.content)


settings = models.NewProjectRequest(clock="frozen")
session.auth = (call("/control/projects/", settings, models.ProjectWithKey).api_key, "")
card = models.TransactionRequest(
    payment_method="credit-card", capture_mode="delayed", expiration_period="P7D"
)
order = call(
    "/v1/orders/", models.OrderRequest(currency="EUR", amount=1295, transactions=[card]), models.Order
)
print("created", order.status.value, order.transactions[0].payment_method)

pay = models.ActRequest(actor="customer", action="pay")
call(f"/control/orders/{order.id}/act/", pay, models.Order)
paid = models.Order.model_validate(session.get(f"{url}/v1/orders/{order.id}/").json())
print(f"paid {paid.status.value}, capturable: {str(paid.transactions[0].is_capturable).lower()}")

advance = call("/control/clock/advance/", models.AdvanceRequest(by="P7D"), models.Advance)
print("a week later:", advance.events[0].kind)

refunds = f"/v1/orders/{order.id}/refunds/"
print("refunded", call(refunds, models.RefundRequest(amount=500), models.Order).amount)
refused = call(refunds, models.RefundRequest(amount=5000), models.Order).error
print("refused", refused.status, refused.type)
