"""A simulated fleet on virtual time: machines, real agents, people who change things, and the rules that must hold in
every story (a simulated course of events)."""
