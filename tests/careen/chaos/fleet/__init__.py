"""A simulated fleet on virtual time: machines, real agents, people who change things, and the rules that every story
must keep."""
