import os

import httpx2
from fastapi import Depends, FastAPI, Request

ORDER = {"currency": "EUR", "amount": 1295, "transactions": [{"payment_method": "credit-card"}]}

app = FastAPI()
paid: set[str] = set()


async def payments():
    url = os.environ.get("PAYMENTS_URL", "https://api.provider.example")
    async with httpx2.AsyncClient(base_url=url, auth=(os.environ.get("PAYMENTS_KEY", ""), "")) as client:
        yield client


@app.post("/checkout")
async def checkout(payments: httpx2.AsyncClient = Depends(payments)):
    answer = await payments.post("/v1/orders/", json=ORDER)
    answer.raise_for_status()
    order = answer.json()
    scheme = payments.base_url.scheme
    return {"order_id": order["id"], "pay_at": f"{scheme}://{order['transactions'][0]['payment_url']}"}


@app.post("/webhook", status_code=204)
async def webhook(request: Request, payments: httpx2.AsyncClient = Depends(payments)):
    order_id = (await request.json())["order_id"]
    answer = await payments.get(f"/v1/orders/{order_id}/")
    if answer.json()["status"] == "completed":
        paid.add(order_id)
