"""Coverage: what a project has met of all that can happen."""
