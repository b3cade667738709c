"""The dashboard: what happens in a project, live in a browser, and buttons for what could happen next."""
