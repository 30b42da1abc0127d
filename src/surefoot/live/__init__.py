"""A learner in a process that answers for itself: the true model is not needed."""
