"""Whether a pod may preempt, the victims on one node, and the choice of the node.

Source: pkg/scheduler/framework/preemption and plugins/defaultpreemption, v1.36.
"""
