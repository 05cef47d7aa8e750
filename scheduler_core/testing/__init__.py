"""What helps to test with the library; shipped with it, used by its own tests."""
