"""When maintenance windows are open, by days and times or by a cron expression."""
