"""Settings whose values are lists of mappings, such as windows."""
