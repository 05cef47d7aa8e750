"""What careen left on Nodes and in the lock, and the writes that remove what is provably careen's."""
