"""Generates scheduling cases from a seed, for the oracle (a program with kube-scheduler's own code) and for
scheduler_core.

A case is a whole cluster, four pods for which both programs choose a node, and sometimes a scheduler configuration.
tests/oracle/README.md describes the format. The same seed and number always give the same case.
"""
