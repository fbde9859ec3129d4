"""The controller: seeds into the ledger, counts out of it; all that an operator sees and says.

`cli`, `exits` and `environment` need the standard library alone: they run before anything is installed.
"""
