"""Code that knows nothing about payments: timelines, periods and identifiers."""
