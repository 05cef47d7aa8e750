"""Everything that careen reads from the API server and writes to it.

Only `client.py` imports the Kubernetes client. All others use `Transport`, so they also run against an API server in
the same process (in tests and in the demo).
"""
