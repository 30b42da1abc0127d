"""What an agent may know: a problem, and policies for it."""
