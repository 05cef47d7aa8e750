"""The forecast, computed by a child process, and its comparison with where the replacement pods run after the drain."""
