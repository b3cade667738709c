"""Third-party shop systems, whose plugins have the address of the payment service built in."""
