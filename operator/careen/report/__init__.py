"""Turns values into text and JSON. It calls no server and runs no command, so tests can compare the whole output."""
