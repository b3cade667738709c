from django.apps import apps
from django.urls import include, path

from shop.webhook import webhook

urlpatterns = [
    path("i18n/", include("django.conf.urls.i18n")),
    path("payments/webhook/", webhook, name="payments-webhook"),
    path("", include(apps.get_app_config("oscar").urls[0])),
]
