"""Requests and readings of public plugins, in our own words."""
