"""Whether more nodes would help pending pods."""
