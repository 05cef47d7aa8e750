"""What the drain caused itself: alerts and health queries after it, against what they said before it."""
