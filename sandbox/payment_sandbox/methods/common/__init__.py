"""What payment methods share."""
