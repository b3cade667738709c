"""The generated parts of the documentation; ``make docs`` writes them into the pages."""
