"""What knows nothing of payments: time lines, periods and identifiers."""
