"""Maintenance windows. A window is a time in which nodes may reboot, defined by days and times or by a cron expression.
Groups of nodes may have different windows."""
