"""Several servers on one PostgreSQL database, and metrics for Prometheus.

Others import nothing of it.
"""
