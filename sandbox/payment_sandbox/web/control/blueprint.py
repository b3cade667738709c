"""The blueprint of the calls on one project."""

from typing import Final

from flask import Blueprint

from payment_sandbox.web.after import release_webhooks
from payment_sandbox.web.auth import select_project
from payment_sandbox.web.control.strict import refuse_unknown
from payment_sandbox.web.guard import refuse_strangers

BODY_ERRORS: Final = (400, 401, 413, 415)

control = Blueprint("control", __name__, url_prefix="/control")
control.before_request(refuse_strangers)
control.before_request(select_project)
control.before_request(refuse_unknown)
control.after_request(release_webhooks)
