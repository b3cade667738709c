"""The screenshots in the README; ``make screenshots`` takes them again."""
