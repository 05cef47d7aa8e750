"""The marks that careen leaves on a cluster, which of them are provably careen's, and the writes that remove them.

This code does no I/O, like everything in the core. The command `careen cleanup` reads, asks the person and writes.
"""
