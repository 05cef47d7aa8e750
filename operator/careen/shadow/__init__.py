"""What scheduler_core would have said of each pod a moment before its binding, and how often the scheduler agrees."""
