"""The shell of a running scheduler: watches, writes, the Lease, metrics. `scheduler_core.running` decides."""
