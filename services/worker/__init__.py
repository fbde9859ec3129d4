"""The worker: one URL after another, from its queue to its end. A file for each step of the walk."""
