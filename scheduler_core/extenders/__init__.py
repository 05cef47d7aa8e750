"""Calls scheduler extenders over HTTP. The library does no other I/O, and calls only configured extenders."""
