"""Does nothing with the pages: for a crawl whose stored pages are all that is wanted."""

from gossamer import Module, Page


class Noop(Module):
    """The module of a crawl that names none."""

    wants_pages = False

    def visit(self, page: Page) -> None:
        """Never called, since it wants no pages."""
