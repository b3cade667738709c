"""The documentation that the sandbox serves: pages of ``sandbox/docs``, and references made from the code."""
