"""The forecast of where the pods of a node land when the node is drained. A child process computes the forecast. After
the drain the agent compares the forecast with the nodes on which the replacement pods run."""
