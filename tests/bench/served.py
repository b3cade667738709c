"""A server for the bench: the sandbox, and views that answer the same bytes from a constant."""

import gc
import sys

from flask import Response, request

from payment_sandbox.cli.serve import SWITCH_SECONDS
from tests.bench.bodies import ANSWER
from tests.support.servers import make_server


def main() -> None:
    """Serve until standard input ends; a state file or a database may be named."""
    state = sys.argv[1] if len(sys.argv) > 1 else None
    sys.setswitchinterval(SWITCH_SECONDS)  # as `serve` does
    server = make_server(clock="frozen", seed=1, freeze_memory=True, state=state)

    def constant() -> Response:
        request.get_data()
        return Response(ANSWER, status=201 if request.method == "POST" else 200, mimetype="application/json")

    server.app.add_url_rule("/constant/", view_func=constant, methods=["GET", "POST"])
    gc.freeze()
    server.start()
    print(server.url, flush=True)
    sys.stdin.read()
    server.stop()


if __name__ == "__main__":
    main()
