"""Every course of a small fleet within written bounds: production's `decide` and lock against each other, state by state."""
