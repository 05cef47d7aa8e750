"""A simulated fleet on virtual time: machines, agents that run careen's production code, people who change objects, and
the rules that every simulated roll-out must keep."""
