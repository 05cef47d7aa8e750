"""Code that several scoring plugins share: counts, normalizing, resource strategies."""
