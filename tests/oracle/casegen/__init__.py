"""Generates seeded scheduling cases for the oracle (a program with kube-scheduler's own code) and for scheduler_core.

A case is a whole cluster, four pods for which both choose a node, and sometimes a scheduler configuration, in the
format of tests/oracle/README.md. The same seed and number always give the same case.
"""
