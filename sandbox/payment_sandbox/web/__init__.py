"""The sandbox over HTTP: the merchant API, the control API, the payment pages and the documentation."""
