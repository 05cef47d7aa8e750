"""The nodes of a snapshot, their images, and the order in which the scheduler searches the nodes. All of these are
updated when nodes change."""
