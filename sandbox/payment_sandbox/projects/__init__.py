"""A project: one merchant integration under test, with a state, a clock and an outbox of its own."""
