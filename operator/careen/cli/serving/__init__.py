"""Behind `careen serve`: the server on the loopback interface, and the refresh of what it shows."""
