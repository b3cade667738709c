"""What answers show of a project and what is in it."""
