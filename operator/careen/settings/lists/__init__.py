"""Settings whose values are lists of mappings: windows, and others of that form."""
