"""The forecast of one drain: computed in a child process, stored, and compared with where the pods landed."""
