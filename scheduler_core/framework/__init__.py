"""What runs the plugins: extension points, verdicts, the runner, and the diagnosis of a pod that fits nowhere."""
