"""Methods that learn a policy from counts of a log, each with a certified value."""
