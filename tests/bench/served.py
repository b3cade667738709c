"""The served sandbox, until standard input ends."""

import sys

from payment_sandbox.cli.server_process import bound_pauses
from tests.support.servers import make_server

if __name__ == "__main__":
    server = make_server(clock="frozen", seed=1)
    bound_pauses()  # as `serve` does
    server.start()
    print(server.url, flush=True)
    sys.stdin.read()
    server.stop()
