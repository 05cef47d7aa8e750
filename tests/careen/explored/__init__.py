"""Every possible course of a small fleet within written bounds: production's decisions and lock against each other."""
