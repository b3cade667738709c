"""Runs the sandbox: the server, HTTP, and the threads that deliver webhooks and drive running clocks."""
