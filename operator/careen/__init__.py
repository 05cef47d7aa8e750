"""careen: reboots the nodes of a Kubernetes cluster one by one, and forecasts where every pod will land.
docs/glossary.md has its words."""
