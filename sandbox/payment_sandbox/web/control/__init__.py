"""The control API: projects, their clocks, and who does what in them."""
