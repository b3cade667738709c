"""Several servers on one PostgreSQL database, and metrics for Prometheus.

No other package imports it.
"""
