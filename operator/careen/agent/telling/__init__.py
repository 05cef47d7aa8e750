"""Messages to people that no single decision knows of: a node that is held back for long, a roll-out's figures."""
