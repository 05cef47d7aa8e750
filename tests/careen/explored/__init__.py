"""Explores every possible course of a small fleet within given bounds, with production's decisions and lock."""
