"""`python -m careen`."""

from careen.cli import main

main()
