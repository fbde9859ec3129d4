"""What a crawl is to be ranked by, looked at before it begins. Without numpy: a controller on servers has no other use for it."""

from gossamer.settings import Frontier
from services.frontier.prioritizers import choose
from services.frontier.prioritizers.pagerank import Pagerank


def check(settings: Frontier) -> None:
    """Raises `SettingsError` for a prioritizer or a rank file that can't work."""
    choose(settings.prioritizer)
    if settings.rank_file is not None:
        from services.frontier.outside import file  # most crawls have none

        file.read(settings.rank_file)


def reads_links(settings: Frontier) -> bool:
    """Whether the ledger has to keep the links of stored pages."""
    return choose(settings.prioritizer).cls is Pagerank
