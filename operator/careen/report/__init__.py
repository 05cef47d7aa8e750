"""Turns values into text and JSON. Tests can compare the whole output, because this package calls no server and runs no
command."""
