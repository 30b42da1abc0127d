"""Pictures of runs and plans."""
