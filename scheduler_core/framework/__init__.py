"""Extension points, verdicts, the runner, and the diagnosis of an unschedulable pod."""
