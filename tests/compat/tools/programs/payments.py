"""The shop of all suites: what the customer does, and the status that the shop then reads."""

ORDER = {"currency": "EUR", "amount": 1295, "transactions": [{"payment_method": "credit-card"}]}
STATUSES = {"pay": "completed", "fail": "error", "wait": "expired"}


def place(api) -> str:
    """Place an order; return its id."""
    return api.session.post(f"{api.base_url}/v1/orders/", json=ORDER, timeout=10).json()["id"]


def after(api, action: str) -> str:
    """Return the status of a new order after the customer's action."""
    order_id = place(api)
    if action == "wait":
        api.clock.advance("PT30M")
    else:
        api.act(order_id, "customer", action)
    return api.session.get(f"{api.base_url}/v1/orders/{order_id}/", timeout=10).json()["status"]


async def awaited_after(api, client, action: str) -> str:
    """Return the status of a new order after the customer's action, in an async test."""
    auth = (api.api_key, "")
    order_id = (await client.post(f"{api.base_url}/v1/orders/", json=ORDER, auth=auth)).json()["id"]
    if action == "wait":
        await api.aio.clock.advance("PT30M")
    else:
        await api.aio.act(order_id, "customer", action)
    return (await client.get(f"{api.base_url}/v1/orders/{order_id}/", auth=auth)).json()["status"]
