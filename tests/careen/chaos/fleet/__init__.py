"""A fleet of real agent shells on virtual time: machines, agents, people, and the laws."""
