"""Claims, volumes and devices that scheduling reads."""
