"""A minimal kube-controller-manager that replaces evicted pods; one file per controller."""
