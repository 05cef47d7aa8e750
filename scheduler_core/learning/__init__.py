"""What the bindings of a scheduler tell about what nobody can see of it."""
