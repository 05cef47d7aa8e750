"""The programs that the tests with simulated nodes start: control plane, hosts, agents, Prometheus."""
