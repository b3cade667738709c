"""The documentation that the sandbox serves: Markdown in ``pages/``, and references made from the code."""
