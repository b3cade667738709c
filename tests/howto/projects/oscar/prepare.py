"""Creates the tables, a product, a member of the staff, and the records that Oscar's documentation requires."""

from decimal import Decimal

import django

django.setup()

from django.contrib.auth import get_user_model  # noqa: E402
from django.core.management import call_command  # noqa: E402
from oscar.core.loading import get_model  # noqa: E402

call_command("migrate", run_syncdb=True, verbosity=0)
get_model("address", "Country").objects.create(
    iso_3166_1_a2="NL",
    iso_3166_1_a3="NLD",
    printable_name="Netherlands",
    name="Netherlands",
    is_shipping_country=True,
)
kind = get_model("catalogue", "ProductClass").objects.create(name="Socks")
product = get_model("catalogue", "Product").objects.create(product_class=kind, title="Socks")
partner = get_model("partner", "Partner").objects.create(name="Mill")
product.stockrecords.create(
    partner=partner, partner_sku="socks", price_currency="EUR", price=Decimal("10.00"), num_in_stock=9
)
get_model("order", "ShippingEventType").objects.create(name="Shipped")
get_model("order", "PaymentEventType").objects.create(name="Refund")
get_user_model().objects.create_superuser("staff", "staff@shop.example", "secret")
