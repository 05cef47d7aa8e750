"""What decisions are made of: the observation, the record on the Node, memory, policy, and the names of things."""
