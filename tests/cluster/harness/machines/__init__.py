"""The programs of a test with nodes: control plane, hosts, agents, Prometheus."""
