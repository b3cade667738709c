"""What a test suite gets: the pytest plugin, its fixtures, and a sandbox without sockets."""
