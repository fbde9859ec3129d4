"""The ports on real things: a folder for each engine, the same file names in each."""
