"""Every input of the machine with its time, as lines; the same lines give the same commands again."""
