"""A cluster without a cluster: an API server in memory, controllers, hosts that reboot, and a judge of the roll-out.

Nothing here is imported by the agent. Start with `api_server.py` (HTTP), `verbs.py` (what each verb does) and
`store.py` (versions and history); `testing.py` is the door for tests of other parts.
"""
