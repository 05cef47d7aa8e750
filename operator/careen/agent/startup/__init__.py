"""The start of an agent: whose lock, which settings, whether a claim is recorded, and how the parts are put
together."""
