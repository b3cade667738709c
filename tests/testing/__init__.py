"""Tests of the fixtures and helpers for merchants' test suites."""
