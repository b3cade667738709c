"""A merchant's application in this process: webhooks on the test's thread or event loop."""
