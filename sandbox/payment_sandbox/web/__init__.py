"""The faces of the sandbox: the merchant API, the pages and the control API."""
