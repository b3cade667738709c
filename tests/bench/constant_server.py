"""A server for the benchmarks: the sandbox, and views that answer with a constant of the same size."""

import sys

from flask import Blueprint, Response

from payment_sandbox.cli.server_process import bound_pauses
from payment_sandbox.web.call import Call
from payment_sandbox.web.routes import route
from tests.bench.bodies import ANSWER
from tests.support.servers import make_server

constant = Blueprint("constant", __name__)


@route(constant, "GET", "/constant/", group="constant", media_type="text/plain")
def get_constant(call: Call) -> Response:
    """Answer with the constant order."""
    return Response(ANSWER, mimetype="application/json")


@route(constant, "POST", "/constant/", group="constant", media_type="text/plain")
def post_constant(call: Call) -> Response:
    """Read the body, and answer with the constant order."""
    call.request.get_data()
    return Response(ANSWER, status=201, mimetype="application/json")


def main() -> None:
    """Serve until standard input ends."""
    server = make_server(clock="frozen", seed=1)
    server.app.register_blueprint(constant)
    bound_pauses()  # as `serve` does
    server.start()
    print(server.url, flush=True)
    sys.stdin.read()
    server.stop()


if __name__ == "__main__":
    main()
