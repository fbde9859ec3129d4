"""The live rank: PageRank over the links seen so far, kept by one frontier of all, and told to the ledger."""
