"""What a stack of containers needs before its first start: credentials that nobody knows, and folders that may be written to.

The one service that runs as root, and it has no network: it makes a password for each server once, hands every other container
the file that it needs and no other, and stays (a container that ends would end the whole stack where the stack is to end with
its first container).
Standard library only.
"""
