"""Maintenance windows. A window is defined by days and times or by a cron expression. Groups of nodes may have
different windows."""
