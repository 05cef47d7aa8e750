"""Whom a pod that fits nowhere may push aside: may it at all, which pods on one node, and on which node.

Source: pkg/scheduler/framework/preemption and plugins/defaultpreemption, v1.36.
"""
