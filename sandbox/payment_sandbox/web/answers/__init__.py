"""The records in responses, and their shapes."""
