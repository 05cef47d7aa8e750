"""Scheduler extenders over HTTP: the library's only I/O, used only if configured."""
