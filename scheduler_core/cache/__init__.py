"""A cluster in memory that follows lists and watch events from the API server."""
