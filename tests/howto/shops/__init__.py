"""Shop systems that nobody here wrote, with plugins that have the address of the payment service built in."""
