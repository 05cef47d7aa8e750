"""Decisions. Pure: no client, no kopf, no clock, no environment; everything arrives in an `Observation`."""
