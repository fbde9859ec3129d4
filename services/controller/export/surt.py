"""The key of a URL in an index of captures: what replay tools compute of the URL that they are asked for, and look up.

SURT, the form that web archives sort by: the host backwards, so that a site's pages stand together, then path and query, folded
as the Internet Archive's tools fold them (case, `www.`, order and session ids of parameters). A key that differed in anything
would not be found, so this follows them also where one would rather not.
Pure. Must not know: what is indexed.
"""

import re
from typing import Final
from urllib.parse import unquote_to_bytes, urlsplit

_DEFAULT_PORTS: Final = {"http": 80, "https": 443}
_WWW: Final = re.compile(r"^www\d*\.")
_ESCAPED: Final = re.compile(rb"[\x00-\x20#%\x7f-\xff]")
_SESSION: Final = re.compile(
    r"(?:(?:jsessionid|phpsessid|sid)=[0-9a-z]{32}|aspsessionid[a-z]{8}=[a-z]{24}|cfid=[^&]+&cftoken=[^&]+)(?:&|$)"
)
#: ASP.NET has it in the path: /(S(…24 characters…))/page.aspx
_PATH_SESSION: Final = re.compile(r"/\((?:(?:[a-z]\([0-9a-z]{24}\))+|[0-9a-z]{24})\)(?=/[^?]*\.aspx)")


def surt(url: str) -> str:
    """`https://www.example.com/A?b&a` is `com,example)/a?a&b`. For a normalised URL; never raises for one."""
    parts = urlsplit(url)
    host = _WWW.sub("", (parts.hostname or "").rstrip("."), count=1)
    port = "" if parts.port in (None, _DEFAULT_PORTS.get(parts.scheme)) else f":{parts.port}"
    return f"{','.join(reversed(host.split('.')))}{port}){_path(_folded(parts.path))}{_query(_folded(parts.query))}"


def _folded(text: str) -> str:
    """In small letters, and escaped once where it has to be, however often it was."""
    raw = text.encode("utf-8", "surrogatepass")
    while (plain := unquote_to_bytes(raw)) != raw:
        raw = plain
    return _ESCAPED.sub(lambda match: b"%%%02x" % match[0][0], raw).decode("ascii").lower()


def _path(path: str) -> str:
    steps: list[str] = []
    for step in path.split("/")[1:]:
        if step == ".." and steps:
            steps.pop()
        elif step != ".":
            steps.append(step)
    return _PATH_SESSION.sub("", "/" + "/".join(filter(None, steps)), count=1)


def _query(query: str) -> str:
    query = _SESSION.sub("", query)
    return "?" + "&".join(sorted(query.split("&"), key=lambda each: each.partition("="))) if query else ""
