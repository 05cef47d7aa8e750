"""Values → text and JSON. Knows no server and no command, so what people read is tested letter by letter."""
