"""The rules of a drain: which pods a drain evicts, and which forecasts (where each pod of the node would go) forbid a
drain."""
