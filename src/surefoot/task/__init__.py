"""What a learner may know: the problem, policies, episodes and counts."""
