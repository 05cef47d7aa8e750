"""Calls scheduler extenders over HTTP. This is the library's only I/O, and only configured extenders are called."""
