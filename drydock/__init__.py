"""An embedded cluster for the demo and for tests: an API server in memory, controllers, hosts that reboot, and a
checker of the roll-out.

The agent imports nothing from this package. Start reading in `server/`, with `api_server.py` (HTTP), `verbs.py` (what
each verb does) and `store.py` (versions and history). Tests of other packages use `server/testing.py`.
"""
