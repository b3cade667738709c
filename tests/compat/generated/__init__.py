"""Clients that generators write from the API description."""
