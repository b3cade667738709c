"""One module per operation that the APIs, the pages or the clock can trigger."""
