"""Clients for calls to the sandbox without sockets."""

from payment_sandbox.loading import late

late(__name__, "intercepting", "with_httpx")  # 8 ms of a first test
