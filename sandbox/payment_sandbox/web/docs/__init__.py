"""The documentation that the sandbox serves: Markdown in ``pages/`` and generated references."""
