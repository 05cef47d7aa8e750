"""Tries every possible course of a small fleet within given bounds. Decisions and lock are production code."""
