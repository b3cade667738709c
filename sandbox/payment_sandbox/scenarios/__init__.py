"""What shall happen: rules that decide the outcome of attempts, and how webhooks fare."""
