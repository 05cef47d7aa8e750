"""Claims, volumes and devices."""
