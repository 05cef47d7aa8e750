"""When a reboot may begin: windows by days and times, windows by cron expressions, and several of them for
groups of nodes."""
