"""Code that several scoring plugins share: counting pods, normalizing scores, and the strategies for scores by
resources."""
