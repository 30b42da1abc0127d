"""What an agent may know: the problem, policies, episodes and counts."""
