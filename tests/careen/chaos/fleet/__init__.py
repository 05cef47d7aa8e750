"""A fleet of real shells on virtual time: machines, agents, people, and the laws."""
