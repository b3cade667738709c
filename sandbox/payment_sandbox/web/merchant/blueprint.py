"""The blueprint of the merchant API."""

from typing import Final

from flask import Blueprint

from payment_sandbox.web.merchant.exchange import begin, finish

BODY_ERRORS: Final = (400, 401, 413, 415)
TAKING: Final = (400, 401, 404, 409, 412, 413, 415)

api = Blueprint("api", __name__, url_prefix="/v1")
api.before_request(begin)
api.after_request(finish)
