"""The steps, one file per phase.

A step reads from top to bottom as a list of rules: each returns a decision, or None if it does not apply. `read` and
`need` (`situation.py`) end a step that lacks facts, and the agent's memory changes with `remember`."""
