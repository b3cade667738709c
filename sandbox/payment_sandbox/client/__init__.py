"""A client of the control API, with a review and a history built on it."""
