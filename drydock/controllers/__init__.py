"""A minimal kube-controller-manager. Its controllers replace evicted pods, for example. Each has its own file."""
