"""A minimal kube-controller-manager that replaces evicted pods, with one file per controller."""
