"""What would be if the cluster had more nodes."""
