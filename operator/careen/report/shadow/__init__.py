"""What `careen shadow` prints."""
