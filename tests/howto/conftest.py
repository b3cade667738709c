"""The projects run in environments of their own: see ``test_projects.py``."""

collect_ignore_glob = ["projects/*"]
