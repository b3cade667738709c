"""An executable specification of orders and money, written from the specification alone, not from the engine.

``step(shop, call)`` returns every answer that is allowed, each with the state that follows it;
``read_order(shop, number)`` returns the merchant's view of an order, except for fields that the specification
leaves open.

The packages do not import this one.
"""

from tests.model.specification.steps import step as step
from tests.model.specification.views import read_order as read_order
