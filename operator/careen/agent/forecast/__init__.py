"""The forecast of one drain: computed in a child process, stored, and compared with the outcome."""
