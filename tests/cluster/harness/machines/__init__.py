"""The programs of a story: control plane, hosts, agents, Prometheus."""
