"""The roll-out as it runs: the documents and files of `careen serve`, the screen of `careen watch`."""
