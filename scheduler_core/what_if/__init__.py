"""What-if questions: whether more nodes would help pending pods."""
