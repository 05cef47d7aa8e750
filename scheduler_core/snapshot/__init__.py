"""The frozen cluster: nodes with their pods, and everything else that scheduling reads."""
