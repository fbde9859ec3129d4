"""Gossamer's vocabulary: what its parts and the authors of modules share. No I/O, and nothing of ours is imported.

Here is what an author of plug-ins needs: `from gossamer import Module, Page, Prioritizer`. Importing it takes the standard library
alone, so that `controller.py --help` works before anything is installed.
"""

from gossamer.module import CrawlInfo, Module
from gossamer.page import Page
from gossamer.prioritizer import Prioritizer

__all__ = ["CrawlInfo", "Module", "Page", "Prioritizer", "__version__"]

__version__ = "0.1.0"
