"""Computes whether more nodes would help pending pods."""
