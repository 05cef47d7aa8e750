"""Refuses manifests of another kind and misspelt fields."""
