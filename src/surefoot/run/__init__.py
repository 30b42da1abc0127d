"""Episodes: simulated in a true world, or live in a process that answers for itself."""
