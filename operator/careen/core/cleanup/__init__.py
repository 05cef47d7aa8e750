"""What careen leaves on a cluster when it goes: which marks are its own, and the writes that take them away.

Pure, like everything in the core. `careen cleanup` reads, asks and writes.
"""
