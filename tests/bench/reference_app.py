"""A little application of Flask and marshmallow, the yardstick for instructions; it stays as it is."""

import sys
from threading import Thread
from wsgiref.simple_server import WSGIRequestHandler, make_server

from flask import Flask, Response, jsonify, request
from marshmallow import Schema, fields, validate

ORDERS: dict[str, dict[str, object]] = {}


class Payment(Schema):
    """A payment."""

    payment_method = fields.String(required=True)


class Order(Schema):
    """An order."""

    currency = fields.String(required=True, validate=validate.OneOf(("EUR",)))
    amount = fields.Integer(required=True, strict=True, validate=validate.Range(min=1))
    description = fields.String()
    merchant_order_id = fields.String()
    return_url = fields.String()
    transactions = fields.List(fields.Nested(Payment))


FORM = Order()
app = Flask(__name__)


@app.post("/v1/orders/")
def create() -> tuple[Response, int]:
    """Create an order."""
    order = {"id": f"order-{len(ORDERS)}", "status": "new", **FORM.load(request.get_json())}
    ORDERS[str(order["id"])] = order
    return jsonify(order), 201


@app.get("/v1/orders/<order_id>/")
def read(order_id: str) -> Response:
    """Read an order."""
    return jsonify(ORDERS[order_id])


class Handler(WSGIRequestHandler):
    """Answers without a line in the log."""

    def log_request(self, *_: object) -> None:
        """Write nothing."""


def main() -> None:
    """Serve until standard input ends."""
    server = make_server("127.0.0.1", 0, app, handler_class=Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    print(f"http://127.0.0.1:{server.server_port}", flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
