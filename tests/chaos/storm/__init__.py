"""A storm over a crawl on servers: everything in it dies, freezes, is cut off or comes back, at random, and nothing may be lost.

`python -m tests.chaos.storm --seed 7 --duration 600`, or `make chaos SEED=7 DURATION=600`.
"""
