"""What pods wait for between their cycle and their binding: Permit plugins, and extenders."""
