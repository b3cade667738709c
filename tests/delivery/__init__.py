"""Tests of the outbox, the receivers and the courier."""
