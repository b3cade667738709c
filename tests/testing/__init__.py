"""What merchants' test suites use."""
