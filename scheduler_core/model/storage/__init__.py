"""The claims, volumes and devices that scheduling reads."""
