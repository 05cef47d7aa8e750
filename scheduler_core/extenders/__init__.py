"""Calls configured scheduler extenders over HTTP. The library does no other I/O."""
