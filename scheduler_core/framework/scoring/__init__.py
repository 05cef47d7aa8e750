"""What several scoring plugins share: counting pods, normalizing, and scores from a node's resources."""
