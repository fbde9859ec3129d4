"""The ledger's verbs over SQLite, one concept a file. Plain functions of a `Desk`: no locks, no waiting, no clock of their own.

The front (adapters/embedded/ledger.py) runs them one after another inside a transaction and makes the whole group durable.
"""
