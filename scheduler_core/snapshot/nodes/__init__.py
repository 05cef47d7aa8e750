"""The nodes of a snapshot beside their columns, and how the columns follow changes of nodes."""
