"""Test helpers, shipped with the library and used by its own tests."""
