"""What runs the sandbox: server, HTTP, the threads that deliver webhooks and wake running clocks."""
