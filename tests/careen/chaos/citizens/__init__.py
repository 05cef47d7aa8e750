"""A story for each citizen of `drydock.zoo`: what careen does beside the operator that it imitates."""
