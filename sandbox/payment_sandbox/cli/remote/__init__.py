"""The commands that call a running server; they print readable text, or JSON for programs."""
