"""A scheduler that runs: events and answers come in, commands go out. Pure: no clock, no network, no chance."""
