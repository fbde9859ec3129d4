"""What of a URL does not count when it is asked whether it was seen: by comparing its two forms, not by a second set of rules."""

from collections.abc import Iterator

from gossamer.urls import identity, origin_of


def left_out(text: str, url: str) -> list[str]:
    """In words, for a text that was given and the URL that is requested for it."""
    return list(_left_out(text, url))


def _left_out(text: str, url: str) -> Iterator[str]:
    origin, same = origin_of(url), identity(url)
    path, _, query = url.removeprefix(origin).partition("?")
    same_path = same.removeprefix(origin_of(same)).partition("?")[0]
    if "#" in text:
        yield "the fragment"
    if origin != origin_of(same):
        yield "the dot at the host's end"
    if path.count("/") > same_path.count("/") or path.count(";") > same_path.count(";"):
        yield "a session id in the path"
    parameters = [(each, _alone(origin, each)) for each in query.split("&")] if query else []
    yield from (each.partition("=")[0] or "an empty parameter" for each, spelled in parameters if not spelled)
    kept = [spelled for _, spelled in parameters if spelled]
    if kept != sorted(kept):
        yield "the order of parameters"


def _alone(origin: str, parameter: str) -> str:
    """The parameter as it stands in an identity; empty if it does not."""
    return identity(f"{origin}/?{parameter}").partition("?")[2]
