"""An embedded cluster for the demo and tests: an API server in memory, controllers, hosts that reboot, and a checker of
the roll-out.

The agent imports nothing from here. Start reading with `api_server.py` (HTTP), `verbs.py` (what each verb does) and
`store.py` (versions and history). `testing.py` is the interface for tests of other packages."""
