"""Clients whose calls to the sandbox need no socket."""
