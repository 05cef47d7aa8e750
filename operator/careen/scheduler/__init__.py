"""The shell of a running scheduler: watches, writes, the Lease, metrics. `scheduler_core.running` decides."""

from typing import Final

OUR_NAME: Final = "careen-scheduler"
"""Of the profile and of the Lease, if no other is configured."""
