"""For test suites: the pytest plugin, its fixtures, and a sandbox without sockets."""
