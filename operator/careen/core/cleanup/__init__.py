"""Finds what careen left on a cluster (labels, annotations, taints, cordons, claims), and computes the writes that
remove it. Only what careen provably wrote is removed.

This code does no I/O, like everything in the core. The command `careen cleanup` reads, asks the person and writes.
"""
