"""careen: reboots a Kubernetes fleet node by node, and knows beforehand where every pod will land."""
