"""Sends reports to people. Each report depends on several decisions of the agent, for example on a refusal that lasts
too long. Also silences the node's alerts in Alertmanager while the node reboots."""
