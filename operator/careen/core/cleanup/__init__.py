"""The marks that careen leaves on a cluster, which of them are provably its own, and the writes that remove them.

Pure, like everything in the core. `careen cleanup` reads, asks and writes.
"""
