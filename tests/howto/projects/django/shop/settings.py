import os

SECRET_KEY = "a secret of the shop"
ROOT_URLCONF = "shop.urls"
STATIC_URL = "static/"
INSTALLED_APPS = ["shop"]
DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
USE_TZ = True

PAYMENTS_URL = os.environ.get("PAYMENTS_URL", "https://api.provider.example")
PAYMENTS_KEY = os.environ.get("PAYMENTS_KEY", "")
