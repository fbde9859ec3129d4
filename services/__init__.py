"""The roles of a crawl: a folder for each, which imports none of the others."""
