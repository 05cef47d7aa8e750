"""Everything that careen reads from the API server and writes to it.

`client.py` is the only file of careen that imports the Kubernetes client. All other files use the interface
`Transport`, so the same code also runs against an API server in the same process (in tests and in the demo).
"""
