"""What pods wait for: extenders, plugins that need long, and Permit plugins."""
