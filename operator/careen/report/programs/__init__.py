"""Machine-readable forms of reports."""
