"""Other people's scheduling, over HTTP: the library's only I/O, and only if configured."""
