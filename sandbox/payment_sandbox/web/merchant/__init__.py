"""The merchant API: its forms, routes and error details."""
