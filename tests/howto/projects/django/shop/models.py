from django.db import models


class Sale(models.Model):
    order_id = models.CharField(max_length=40, unique=True)
    status = models.CharField(max_length=20, default="open")
