"""The screenshot in the README; ``make screenshots`` takes it again."""
