"""One module per thing that a person or a program can ask for."""
