"""The nodes of a snapshot: their changes, their images, and the order in which the scheduler searches them."""
