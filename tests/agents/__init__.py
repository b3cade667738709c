"""A benchmark of coding agents: ten tasks, each a shop to complete, graded by a rehearsal that the agents do not see."""
