"""A small shop that takes payments, and the tests that its developers wrote: copy it, and begin."""
