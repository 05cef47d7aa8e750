"""What people ask of nodes."""
