"""The marks that careen leaves on a cluster, which of them are provably careen's, and the writes that remove them.

Pure, like everything in the core. The command `careen cleanup` reads, asks and writes."""
