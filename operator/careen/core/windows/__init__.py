"""Maintenance windows: by days and times, by cron expressions, and several of them for groups of nodes."""
