"""Plugins of others: how they are loaded, and how they are called."""
