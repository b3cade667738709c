"""The client of the control API, and what is made of its answers: review and history."""
