"""The frozen cluster: nodes with their pods, and the other objects that scheduling reads."""
