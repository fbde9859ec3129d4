"""The frontier: hint → priority → band → worker's queue. Any number may run; none holds state that the ledger doesn't."""
