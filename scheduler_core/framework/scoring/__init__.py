"""Code that several scoring plugins share: counting pods, normalizing scores, and computing scores from the resources
of a node (LeastAllocated, MostAllocated, RequestedToCapacityRatio)."""
