"""Turns values into text and JSON. This package uses no server and no command, so tests can compare its whole
output."""
