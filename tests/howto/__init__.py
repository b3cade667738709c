"""What the documentation shows, run as it stands there."""
