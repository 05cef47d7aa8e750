"""The forecast of one drain: computed in a child process, and after the drain compared with the nodes on which the
replacement pods run."""
