"""The lock, an annotation on careen's DaemonSet: its content (which nodes hold claims), the order of the waiting nodes,
and the search for claims that no node uses any more."""
