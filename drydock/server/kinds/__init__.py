"""The kinds that the server knows: their rules, columns and discovery."""
