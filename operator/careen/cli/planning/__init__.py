"""What `careen plan` reads before it simulates: the cluster, and the settings of --set."""
