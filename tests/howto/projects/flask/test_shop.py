import pytest
from shop import Payments, Sale, make_app


@pytest.fixture
def app(payment_sandbox):
    payments = Payments(payment_sandbox.base_url, payment_sandbox.api_key, payment_sandbox.session)
    app = make_app("sqlite://", payments)  # in memory, so visible on this thread only
    payment_sandbox.deliver_to(app)
    return app


def test_a_paid_sale(app, payment_sandbox):
    answer = app.test_client().post("/checkout")
    assert answer.location.startswith(payment_sandbox.base_url)
    order_id = app.database.query(Sale).one().order_id
    payment_sandbox.act(order_id)
    assert app.database.get(Sale, order_id).status == "paid"
    payment_sandbox.review().assert_clean()
