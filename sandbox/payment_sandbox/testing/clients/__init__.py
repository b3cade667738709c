"""Clients for calls to the sandbox without sockets."""
