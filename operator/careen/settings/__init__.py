"""Every setting: the tree, how values are written, where they come from, and what a change does."""
