"""An embedded cluster for the demo and for tests: an API server in memory, controllers, hosts that reboot, a checker.
Its words are in docs/glossary.md.

The agent imports nothing from here. Start in `server/`: `api_server.py` (HTTP), `verbs.py`, `store.py` (versions and
history). Tests of other packages use `server/testing.py`.
"""
