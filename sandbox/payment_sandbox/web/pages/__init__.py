"""The payment pages; their URLs contain the project id because payers have no API key."""
