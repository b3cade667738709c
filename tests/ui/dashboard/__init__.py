"""The dashboard, driven without a browser."""
