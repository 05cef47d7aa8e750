"""What programs read of a report."""
