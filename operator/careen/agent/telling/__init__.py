"""Reports that depend on several decisions, for example on a refusal that lasts too long; and the silence of the node's
alerts while it reboots."""
