"""What happened: episodes, and the counts that they add up to."""
