from urllib.parse import urlsplit

import requests
from flask import Flask, redirect, request
from sqlalchemy import String, create_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column, scoped_session, sessionmaker

ORDER = {"currency": "EUR", "amount": 1295, "transactions": [{"payment_method": "credit-card"}]}


class Base(DeclarativeBase):
    pass


class Sale(Base):
    __tablename__ = "sale"
    order_id: Mapped[str] = mapped_column(String(40), primary_key=True)
    status: Mapped[str] = mapped_column(String(20), default="open")


class Payments:
    """The shop's client of the payment service."""

    def __init__(self, base_url, api_key, session=None):
        self.base_url = base_url
        self.scheme = urlsplit(base_url).scheme  # payment_url has none
        self.session = session or requests.Session()
        self.session.auth = (api_key, "")

    def call(self, method, path, body=None):
        answer = self.session.request(method, f"{self.base_url}{path}", json=body, timeout=10)
        answer.raise_for_status()
        return answer.json()


def make_app(database_url, payments):
    app = Flask("shop")
    engine = create_engine(database_url)
    Base.metadata.create_all(engine)
    app.database = database = scoped_session(sessionmaker(engine, class_=Session))

    @app.teardown_appcontext
    def close_session(error):
        database.remove()

    @app.post("/checkout")
    def checkout():
        order = payments.call("POST", "/v1/orders/", ORDER)
        database.add(Sale(order_id=order["id"]))
        database.commit()
        return redirect(f"{payments.scheme}://{order['transactions'][0]['payment_url']}")

    @app.post("/webhook")
    def webhook():
        order_id = request.json["order_id"]
        status = payments.call("GET", f"/v1/orders/{order_id}/")["status"]
        sale = database.get(Sale, order_id)
        if sale.status == "open" and status == "completed":
            sale.status = "paid"
            database.commit()
        return "", 204

    return app
