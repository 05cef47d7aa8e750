"""Generates seeded scheduling cases for the oracle and for scheduler_core.

A case is a whole cluster, four pods to judge and sometimes a scheduler configuration, in the format of
tests/oracle/README.md. The same seed and number always give the same case.
"""
