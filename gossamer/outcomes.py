"""How a URL ends, and how a crawl does.

Every URL that was added is closed with exactly one `Outcome`, and no verb changes it afterwards. A page that can't be had is no
error of ours: it is an outcome with a reason. `docs/outcomes.md` is this file as a table; a test keeps the two together.
"""

from enum import StrEnum


class Outcome(StrEnum):
    """What became of a URL. Its `meaning` is what the docs and `explain` say."""

    meaning: str

    def __new__(cls, name: str, meaning: str = "") -> "Outcome":
        member = str.__new__(cls, name)
        member._value_ = name
        member.meaning = meaning
        return member

    DONE = "done", "fetched, parsed and recorded; stored unless the page forbids it (`noindex`)"
    NO_CONTENT = "no_content", "a success without a body: 204, 205, an empty or blank 200"
    DUPLICATE = "duplicate", "its content is stored already, exactly or nearly, under the URL that is named"
    REDIRECT = "redirect", "3xx or meta refresh; the target was handed on as a URL of its own"
    REDIRECT_LIMIT = "redirect_limit", "too many hops, or a redirect to itself"
    GONE = "gone", "404 or 410"
    HTTP_ERROR = "http_error", "any other 4xx, a 5xx after its retry, a senseless status, or a host that kept asking us to wait"
    ROBOTS_DENIED = "robots_denied", "robots.txt forbids it, stayed out of reach, or asks for a longer delay than we accept"
    TOO_LARGE = "too_large", "received or decoded bytes passed the cap; nothing of it is kept"
    TOO_COMPLEX = "too_complex", "within the cap, but its markup would cost the parser too much"
    WRONG_TYPE = "wrong_type", "neither HTML nor text, by its header or by its first bytes"
    BAD_ENCODING = "bad_encoding", "a content coding or a text that can't be decoded"
    MALFORMED = "malformed", "not valid HTTP, or a message that ended early"
    TIMEOUT = "timeout", "the deadline of the whole attempt passed, twice"
    CONNECT_FAILED = "connect_failed", "no connection, twice"
    DNS_FAILED = "dns_failed", "the name has no address, or its servers don't answer"
    TLS_FAILED = "tls_failed", "no TLS session, or a certificate that doesn't hold"
    URL_REFUSED = "url_refused", "an unusable URL, or a shape, scheme or port that is refused; decided without any request"
    ADDRESS_REFUSED = "address_refused", "the address is not a public one; decided before dialling"
    BUDGET = "budget", "a budget of its host, domain or path is used up; the reason names the rule"
    SHED = "shed", "the worst of more open URLs than the crawl may hold"
    POISON = "poison", "its worker died each time that it was fetched, in the end alone"


class Flag(StrEnum):
    """What else is to be known of a page that is `done`."""

    NOINDEX = "noindex"  #: the page asks not to be kept: neither stored nor handed to modules
    NOFOLLOW = "nofollow"  #: the page asks that its links be left alone
    MODULE_FAILED = "module_failed"  #: a module raised or hung on it; page and links are as without that
    CHECKSUM_BAD = "checksum_bad"  #: its compressed body was whole, but the checksum was not right
    LINKS_CUT = "links_cut"  #: it has more links than are kept of one page
    SITEMAP = "sitemap"  #: it is a sitemap: read for its links, neither stored nor handed to modules


class CrawlOutcome(StrEnum):
    """Why a crawl ended."""

    COMPLETE = "complete"  #: no URL is open any more
    PAGE_BUDGET = "page_budget"  #: exactly `max_pages` pages are stored, and URLs are open
    BYTE_BUDGET = "byte_budget"  #: another request could have passed `max_bytes`
    STOPPED = "stopped"  #: the operator stopped it
    STALLED = "stalled"  #: URLs are open, none waits for a time, and nothing has moved for minutes
    FAILED = "failed"  #: every seed failed, or the crawl could not go on
