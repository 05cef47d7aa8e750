"""What a snapshot keeps of its nodes beside their columns, and how these follow when nodes change."""
