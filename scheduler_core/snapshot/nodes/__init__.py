"""The nodes of a snapshot, their images, and the order in which the scheduler searches them."""
