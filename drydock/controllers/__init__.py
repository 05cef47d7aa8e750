"""A minimal kube-controller-manager, one file per controller."""
