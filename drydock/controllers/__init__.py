"""Just enough of kube-controller-manager that evicted pods come back; one file per controller."""
