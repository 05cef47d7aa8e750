"""Code that several steps share. A step is the function that decides for a node in one phase."""
