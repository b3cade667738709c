"""Oscar's documented settings, with an SQLite database."""

import os
from pathlib import Path

from oscar.defaults import *  # noqa: F403

FOLDER = Path(os.environ["SHOP_FOLDER"])
SECRET_KEY = "a secret of the shop"
DEBUG = True
ALLOWED_HOSTS = ["127.0.0.1"]
ROOT_URLCONF = "shop.urls"
STATIC_URL = "static/"
MEDIA_ROOT = FOLDER / "media"
MEDIA_URL = "media/"
SITE_ID = 1
USE_TZ = True
DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": FOLDER / "db.sqlite3",
        "OPTIONS": {"timeout": 20},
    }
}
EMAIL_BACKEND = "django.core.mail.backends.locmem.EmailBackend"
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
HAYSTACK_CONNECTIONS = {"default": {"ENGINE": "haystack.backends.simple_backend.SimpleEngine"}}
AUTHENTICATION_BACKENDS = [
    "oscar.apps.customer.auth_backends.EmailBackend",
    "django.contrib.auth.backends.ModelBackend",
]
FORKED_APPS = {"checkout": "checkout.apps.CheckoutConfig", "order": "order.apps.OrderConfig"}
APPS = [
    "analytics",
    "checkout",
    "address",
    "shipping",
    "catalogue",
    "communication",
    "partner",
    "basket",
    "payment",
]
APPS += ["offer", "order", "customer", "search", "voucher", "wishlists", "dashboard"]
DASHBOARD_APPS = [
    "reports",
    "users",
    "orders",
    "catalogue",
    "offers",
    "partners",
    "pages",
    "ranges",
    "reviews",
]
DASHBOARD_APPS += ["vouchers", "communications", "shipping"]
OSCAR_APPS = [
    *[FORKED_APPS.get(name, f"oscar.apps.{name}.apps.{name.capitalize()}Config") for name in APPS],
    *[f"oscar.apps.dashboard.{name}.apps.{name.capitalize()}DashboardConfig" for name in DASHBOARD_APPS],
    "oscar.apps.catalogue.reviews.apps.CatalogueReviewsConfig",
]
INSTALLED_APPS = [
    *[
        f"django.contrib.{name}"
        for name in ("admin", "auth", "contenttypes", "sessions", "messages", "staticfiles")
    ],
    *["django.contrib.sites", "django.contrib.flatpages", "shop", "oscar.config.Shop"],
    *OSCAR_APPS,
    *["widget_tweaks", "haystack", "sorl.thumbnail", "treebeard", "django_tables2"],
]
MIDDLEWARE = [
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "oscar.apps.basket.middleware.BasketMiddleware",
]
CONTEXT_PROCESSORS = [
    *[
        f"django.template.context_processors.{name}"
        for name in ("debug", "request", "i18n", "media", "static")
    ],
    "django.contrib.auth.context_processors.auth",
    "django.contrib.messages.context_processors.messages",
    *["oscar.apps.search.context_processors.search_form", "oscar.apps.checkout.context_processors.checkout"],
    *[
        "oscar.apps.communication.notifications.context_processors.notifications",
        "oscar.core.context_processors.metadata",
    ],
]
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {"context_processors": CONTEXT_PROCESSORS},
    }
]
TABLES = [
    *APPS,
    *[f"{name}_dashboard" for name in DASHBOARD_APPS],
    "reviews",
    "admin",
    "auth",
    "contenttypes",
]
MIGRATION_MODULES = dict.fromkeys(
    [*TABLES, "sessions", "sites", "flatpages", "thumbnail"]
)  # creates all tables at once, which is faster
OSCAR_ALLOW_ANON_CHECKOUT = True
OSCAR_DEFAULT_CURRENCY = "EUR"
OSCAR_ORDER_STATUS_PIPELINE = {
    "Pending": ("Authorised", "Cancelled"),
    "Authorised": ("Cancelled",),
    "Cancelled": (),
}
PAYMENTS_KEY = "key-of-the-shop"
