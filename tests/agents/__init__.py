"""A benchmark of coding agents: ten tasks, each a shop to complete, graded by a hidden rehearsal."""
