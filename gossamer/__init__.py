"""Gossamer's vocabulary: what its parts and the authors of modules share. No I/O, and nothing of ours is imported.

Here is what a module's author needs: `from gossamer import Module, Page`. Importing it takes the standard library alone, so that
`controller.py --help` works before anything is installed.
"""

from gossamer.module import CrawlInfo, Module
from gossamer.page import Page

__all__ = ["CrawlInfo", "Module", "Page", "__version__"]

__version__ = "0.1.0"
