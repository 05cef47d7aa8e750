"""What is on a Node and who put it there: careen's marks, and their removal."""
