"""An agent that has nothing to do replaces itself by a small program, and that replaces itself by the agent."""
