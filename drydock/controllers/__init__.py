"""A minimal kube-controller-manager. For example, its controllers replace evicted pods. Each controller has its own
file.
"""
