"""Ranks that come from outside: an API in Open PageRank's form, or a file of the operator's. They are mixed into the crawl's own.

A rank from outside is a hint and no more: it comes in the background, and until it is there, or if it never comes, a URL goes its
way by the crawl's own rank alone. Nothing here is waited for by anybody.
"""
