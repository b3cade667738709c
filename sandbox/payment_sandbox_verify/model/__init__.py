"""An executable specification of orders and money, written from the specification without the engine.

``step(shop, call)`` returns every answer that is allowed, each with the state that follows it;
``read_order(shop, number)`` what the merchant reads then. Fields on which nothing is said are left out.

Others import nothing of it.
"""

from payment_sandbox_verify.model.steps import step as step
from payment_sandbox_verify.model.views import read_order as read_order
