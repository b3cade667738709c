from oscar.apps.checkout import apps


class CheckoutConfig(apps.CheckoutConfig):
    name = "checkout"
