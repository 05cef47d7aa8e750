"""The frozen cluster: nodes with their pods, and all other objects that scheduling reads."""
