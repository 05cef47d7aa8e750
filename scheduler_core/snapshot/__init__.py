"""The frozen state of a cluster: its nodes with their pods, and the other objects that scheduling reads."""
