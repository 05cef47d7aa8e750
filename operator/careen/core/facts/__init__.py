"""The inputs of decisions: the observation, the record on the Node, memory, policy, and the names of keys and codes."""
