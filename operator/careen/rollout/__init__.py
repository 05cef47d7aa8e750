"""The model of the running roll-out, from what the API server says about Nodes and lock: which node is where, what
holds the others, and when all are done. Every view of the fleet shows this one value."""
