"""URLs: what is asked for, what counts as seen. The names in brackets are the cases of the hostile web that they settle."""

import string
import time

import pytest
from ada_url import check_url
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gossamer.errors import UrlError
from gossamer.ids import URL_ID_BYTES
from gossamer.messages import Link
from gossamer.tracking import MAYBE_SESSIONS, SESSION_PREFIXES, SESSIONS, TRACKING, TRACKING_PREFIXES
from gossamer.urls import SITES_KEPT, Base, Finder, domain_of, family_of, host_of, identity, origin_of, requested, url_id

PAGE = "http://base.test/dir/page?q=1"

ESCAPES = ["%7E", "%7e", "%2F", "%2f", "%252e", "%2e", "%", "%%37E", "%4%31", "%C3%A9", "é", "+", "%20", " "]
PIECES = [
    *ESCAPES,
    *["/", "//", "..", ".", "a", "B", "index.html", ";jsessionid=1", ";JSESSIONID=2", f"(S({'a1' * 12}))", "(S(x))", "\t", "\\"],
]
PARAMETERS = [
    *[
        "utm_source=x",
        "utm%5Fsource=x",
        "UTM_Medium=y",
        "fbclid=1",
        "a=1",
        "a=2",
        "a",
        "a=",
        "=",
        "=1",
        "",
        "b=%7E",
        "a==",
        "b=c=d",
    ],
    *["sid=5", f"sid={'0f' * 16}", "PHPSESSID=1", "s=words", *ESCAPES],
]
HOSTS = [
    "example.com",
    "EXAMPLE.com.",
    "example.com:80",
    "example.com.:8080",
    "[::1]",
    "127.1",
    "é.example",
    "xn--ls8h.la",
    "a_b",
]

paths = st.lists(st.sampled_from(PIECES), max_size=6).map(lambda pieces: "/" + "".join(pieces))
queries = st.lists(st.sampled_from(PARAMETERS), max_size=5).map("&".join)
urls = st.builds(
    "{}://{}{}{}{}".format,
    st.sampled_from(["http", "https", "HTTP"]),
    st.sampled_from(HOSTS),
    paths,
    st.one_of(st.just(""), queries.map("?{}".format)),
    st.sampled_from(["", "#", "#x?y"]),
)
anything = st.one_of(
    urls, st.text(), st.text(string.printable), st.text().map("http://{}/".format), paths, queries.map("?{}".format)
)


def reason(text: str, base: str | None = None) -> str:
    with pytest.raises(UrlError) as refused:
        requested(text, base)
    return str(refused.value)


@settings(deadline=None)
@given(anything, st.sampled_from([None, PAGE, "https://other.test/"]))
@example("http://xn--a/", None)
@example("http://\ud800/", None)
def test_whatever_the_text_there_is_a_url_or_a_reason(text: str, base: str | None) -> None:
    try:
        url = requested(text, base)
    except UrlError:
        return

    assert check_url(url)
    assert url.isascii()
    assert "#" not in url


@settings(deadline=None)
@given(anything)
def test_requesting_twice_changes_nothing(text: str) -> None:
    try:
        url = requested(text, PAGE)
    except UrlError:
        return

    assert requested(url) == url
    assert requested(url, "https://other.test/") == url


@settings(deadline=None)
@given(anything)
@example("http://h/%%37E")
@example("http://h/..;jsessionid=1;jsessionid=2")
@example("http://h/?a==&a=&=&a")
def test_canonicalising_twice_changes_nothing(text: str) -> None:
    try:
        url = requested(text, PAGE)
    except UrlError:
        return
    once = identity(url)

    assert identity(once) == once
    assert requested(once) == once, "an identity can be asked about in robots.txt"
    assert domain_of(once) == domain_of(url), "an identity is of the same domain"


class Rules:
    """The four rules of identity as the module's text has them, letter by letter: nothing shared with what they check."""

    UNRESERVED = string.ascii_letters + string.digits + "-._~"

    @classmethod
    def identity(cls, url: str) -> str:
        scheme, _, behind = url.partition("://")
        site, slash, rest = behind.partition("/")
        rest = cls.escapes(slash + rest)
        path, _, query = rest.partition("?")
        kept = cls.query(query)
        return f"{scheme}://{cls.site(site)}{cls.sessions(path)}" + (f"?{kept}" if kept else "")

    @classmethod
    def escapes(cls, text: str) -> str:
        out, at = "", 0
        while at < len(text):
            digits = text[at + 1 : at + 3]
            if text[at] != "%":
                out, at = out + text[at], at + 1
            elif len(digits) < 2 or any(each not in string.hexdigits for each in digits):
                out, at = out + "%25", at + 1
            else:
                char = chr(int(digits, 16))
                out, at = out + (char if char in cls.UNRESERVED else "%" + digits.upper()), at + 3
        return out

    @classmethod
    def site(cls, site: str) -> str:
        host, colon, port = site.rpartition(":") if ":" in site and not site.endswith("]") else (site, "", "")
        return host.removesuffix(".") + colon + port

    @classmethod
    def sessions(cls, path: str) -> str:
        segments = path.split("/")
        last, *parameters = segments[-1].split(";")
        while parameters and parameters[-1].lower().startswith("jsessionid="):
            if len(parameters) == 1 and last in (".", ".."):
                break
            parameters.pop()
        segments[-1] = ";".join([last, *parameters])
        first, *middle, end = segments
        return "/".join([first, *(each for each in middle if not cls.is_asp_session(each)), end]) if middle else "/".join(segments)

    @classmethod
    def is_asp_session(cls, segment: str) -> bool:
        inner = segment.removeprefix("(S(").removesuffix("))")
        small = all(each in string.ascii_lowercase + string.digits for each in inner)
        return segment == f"(S({inner}))" and len(inner) == 24 and small

    @classmethod
    def query(cls, query: str) -> str:
        kept = []
        for parameter in query.split("&"):
            name, _, value = parameter.partition("=")
            folded = name.lower()
            prefixed = any(folded.startswith(each) for each in (*TRACKING_PREFIXES, *SESSION_PREFIXES))
            session = folded in MAYBE_SESSIONS and len(value) >= 32 and all(each in string.hexdigits for each in value)
            if (name or value) and not (prefixed or session or folded in TRACKING or folded in SESSIONS):
                kept.append(f"{name}={value}" if value else name)
        return "&".join(sorted(kept))


@settings(deadline=None)
@given(anything)
@example("http://h/(S(aaaaaaaaaaaaaaaaaaaaaaaa))/(S(bbbbbbbbbbbbbbbbbbbbbbbb))/x")
@example("http://h/a;b;jsessionid=1;JSESSIONID=2?x;jsessionid=3")
@example("http://h/..;jsessionid=1;jsessionid=2")
@example("http://h.:81/?a==&utm%5fsource=1")
def test_identity_changes_what_is_asked_for_by_its_four_rules_and_no_others(text: str) -> None:
    try:
        url = requested(text, PAGE)
    except UrlError:
        return

    assert identity(url) == Rules.identity(url)


@settings(deadline=None)
@given(urls, st.text())
def test_whatever_the_fragment_the_same_is_requested(url: str, fragment: str) -> None:
    bare = url.partition("#")[0] + "#"

    assert requested(bare + fragment) == requested(bare)


PLAIN_PARTS = st.sampled_from(
    [
        *"/.~-_?=&:# ;,@'()[%\\\t",
        *["//", "./", "../", "..", "a", "B0", "x.html", "%41", "%2e", "%2E%2e", "%zz", "é"],
        *["http:", "https:", "mailto:", "https://known.test", "//known.test", "https://KNOWN.test", "https://other.test"],
    ]
)
BASES = st.sampled_from(
    [
        *["http://base.test/", "http://base.test/dir/page?q=1", "https://known.test/a/b/c/", "http://base.test/a%41é/b?c"],
        *["http://base.test//a/b", "http://base.test/a//b/c", "http://base.test//", "http://base.test/a/(x)/;y?''"],
    ]
)


def placed(base: str, href: str) -> str | None:
    finder = Finder()
    for site in ("https://known.test/", "http://known.test/"):
        finder.resolve(PAGE, site)
    place = finder.place(Base.of(requested(base)), href)
    return None if place is None else "".join(place)


@given(BASES, st.lists(PLAIN_PARTS, max_size=7).map("".join))
@example("http://base.test/", "../../a")
@example("http://base.test//a/b", "../c")
@example("http://base.test/a//b/c", "../../../d")
@example("http://base.test/dir/page?q=1", "?r#s")
@example("http://base.test/dir/page?q=1", "#")
@example("http://base.test/dir/page?q=1", "..//a")
@example("http://base.test/dir/page?q=1", "x:y")
@example("http://base.test/dir/page?q=1", "../x:y")
@example("http://base.test/dir/page?q=1", "/x:y")
@example("http://base.test/dir/page?q=1", "a/%2e%2E/b")
@example("http://base.test/dir/page?q=1", "/a #b")
@example("http://base.test/dir/page?q=1", "?'")
@example("http://base.test/dir/page?q=1", "https://known.test")
@settings(max_examples=2000, deadline=None)
def test_a_link_that_is_taken_for_plain_is_read_as_the_standard_says(base: str, href: str) -> None:
    plain = placed(base, href)

    assert plain is None or plain == requested(href, requested(base))
    assert plain is None or not Base.of(plain).path.startswith("//")


@pytest.mark.parametrize(
    "href",
    [
        *["/", "/a/b", "/a/b.html?x=1", "next.html", "sub/next", "https://known.test/a?b=c", "//known.test/a", "", "#top"],
        *["../up.html", "../../up/", "./here", "?page=2", "/wiki/Talk:A_(b),_c!", "/a/%C3%A9#part", " /a\n"],
    ],
)
def test_ordinary_links_are_taken_for_plain(href: str) -> None:
    assert placed(PAGE, href) == requested(href, PAGE)


@settings(deadline=None)
@given(st.permutations(["a=1", "b", "a=2", "c=%7E", "utm_id=1", "", "gclid=x"]))
def test_the_order_of_parameters_does_not_count(parameters: list[str]) -> None:
    assert identity("http://h/x?" + "&".join(parameters)) == "http://h/x?a=1&a=2&b&c=~"


@pytest.mark.parametrize(
    ("text", "url"),
    [
        pytest.param("../other", "http://base.test/other", id="relative"),
        pytest.param("", PAGE, id="the page itself"),
        pytest.param("#part", PAGE, id="a part of the page"),
        pytest.param("http:\\\\host\\x", "http://host/x", id="backslashes"),
        pytest.param("http://good.test\\@evil.test/", "http://good.test/@evil.test/", id="the host ends at the backslash"),
        pytest.param("ht\ttp://ho\nst/a\rb", "http://host/ab", id="tabs and line breaks go"),
        pytest.param(" \x01\t http://host/ \n", "http://host/", id="blanks around go"),
        pytest.param("http:///host", "http://host/", id="too many slashes"),
        pytest.param("http:host", "http://base.test/dir/host", id="no slashes is relative"),
        pytest.param("//host", "http://host/", id="no scheme"),
        pytest.param("http://good.test#@evil.test", "http://good.test/", id="an @ in the fragment"),
        pytest.param("http://good.test?@evil.test", "http://good.test/?@evil.test", id="an @ in the query"),
        pytest.param("http://%31%32%37.0.0.1/", "http://127.0.0.1/", id="escapes in the host are decoded"),
        pytest.param("http://ⓛocalhost/", "http://localhost/", id="letters in circles"),
        pytest.param("http://１２７。0.0.1/", "http://127.0.0.1/", id="full-width digits and dots"),
        pytest.param("http://ſ.test/", "http://s.test/", id="a long s"),
        pytest.param("http://a_b.test/", "http://a_b.test/", id="an underscore"),
        pytest.param("http://h:080/", "http://h/", id="the default port, padded"),
        pytest.param("http://h:/", "http://h/", id="a colon and no port"),
        pytest.param("http://h/%0d%0aSET x", "http://h/%0d%0aSET%20x", id="an escaped line break stays one"),
        pytest.param("http://h/a/../b/./c", "http://h/b/c", id="dots"),
        pytest.param("http://h/%2e%2e/.%2E/x", "http://h/x", id="escaped dots"),
        pytest.param("http://h/b #part", "http://h/b%20", id="a blank before a fragment belongs to the path"),
        pytest.param(f"http://h/b #{'x' * 5000}", "http://h/b%20", id="a long fragment does not count"),
        pytest.param("http://h/?utm_source=a&b&a", "http://h/?utm_source=a&b&a", id="nothing else is changed"),
    ],
)
def test_a_link_is_read_as_a_browser_reads_it(text: str, url: str) -> None:
    assert requested(text, PAGE) == url


@pytest.mark.parametrize(
    "text",
    [
        *[
            "file:///etc/passwd",
            "file://public.test/etc/passwd",
            "ftp://h/",
            "data:text/html,x",
            "javascript:alert(1)",
            "gopher://h/",
        ],
        *["s3://b/k", "ws://h/", "wss://h/", "blob:http://h/x", "view-source:http://h/", "about:blank", "mailto:a@b.test"],
    ],
)
def test_other_schemes_are_refused(text: str) -> None:
    """(41a-c)"""
    assert reason(text, PAGE) == "not http or https"


@pytest.mark.parametrize("text", ["http://user:pw@host/", "http://a@b@c/", "http://good.test@10.0.0.1/", "//user@host/"])
def test_user_names_and_passwords_are_refused(text: str) -> None:
    assert reason(text, PAGE) == "user name or password"


@pytest.mark.parametrize(
    "text",
    [
        *["http://a b/", "http://a<b/", "http://[v1.x]/", "http://[::1", "http://h:99999/", "http://h:%38%30/", "http://"],
        *["http://%00/", "http://a%2fb/", "http://1.2.3.08/", "http://256.1.1.1/", "http://1.1.1.1.1/", "http://foo.0x4/"],
        *["http://[fe80::1%25lo]/", "http://[fe80::1%lo]/", "http://\ud800/"],
    ],
)
def test_what_no_browser_would_open_is_refused(text: str) -> None:
    """(42d, 42e, 43c, 44, 45, 49)"""
    assert reason(text, PAGE) == "not a URL"


@pytest.mark.parametrize(
    "host",
    [
        pytest.param("xn--a", id="Punycode that stands for nothing"),
        pytest.param("xn--", id="Punycode of nothing"),
        pytest.param("xn--abc-", id="Punycode of plain letters"),
        pytest.param("a.xn--A-.test", id="Punycode inside a name"),
        pytest.param("a" * 64 + ".test", id="a label of 64"),
        pytest.param(".".join(["a" * 50] * 5), id="a name of 254"),
        pytest.param("a..b", id="an empty label"),
        pytest.param(".a", id="an empty first label"),
        pytest.param("a..", id="two dots at the end"),
        pytest.param(".", id="nothing but a dot"),
    ],
)
def test_names_that_no_server_has_are_refused(host: str) -> None:
    assert reason(f"http://{host}/") == "not a host name"


def test_the_longest_names_pass() -> None:
    name = ".".join(["a" * 63] * 3 + ["b" * 61])

    assert host_of(requested(f"http://{name}./")) == name + "."


@pytest.mark.parametrize(
    "text", ["http://h/" + "a" * 65_536, "http://h/" + "é" * 700, "http://" + "ß" * 20_000 + "/", "a." * 20_000]
)
def test_long_urls_are_refused_quickly(text: str) -> None:
    """(43e, 50a)"""
    started = time.process_time()

    assert reason(text, PAGE) in ("too long", "not a URL")
    assert time.process_time() - started < 0.05


def test_the_length_that_is_allowed_can_be_set() -> None:
    url = "http://h/" + "a" * (2048 - 9)

    assert requested(url) == url
    assert reason(url + "a") == "too long"
    with pytest.raises(UrlError):
        requested("http://h/abcdefg", length_max=15)


def test_names_that_look_alike_are_two() -> None:
    """The first has a Cyrillic letter."""
    assert requested("http://аpple.test/") == "http://xn--pple-43d.test/"
    assert requested("http://apple.test/") == "http://apple.test/"


@pytest.mark.parametrize(
    "same",
    [
        pytest.param(["http://h/x", "http://h/x#a", "http://h/x#"], id="fragments"),
        pytest.param(["http://h", "http://h/", "http://h?", "http://h/?&"], id="no path, an empty query"),
        pytest.param(["http://h/b/c", "http://h/a/../b/./c", "http://h/%2e%2e/b/c", "http://h/../../b/c"], id="dots"),
        pytest.param(["http://h/", "http://h:80/", "http://h:080/"], id="http's port"),
        pytest.param(["https://h/", "https://h:443/"], id="https' port"),
        pytest.param(["http://h/%7Ea", "http://h/%7ea", "http://h/~a", "http://h/~%61"], id="unreserved characters"),
        pytest.param(["http://h/a%2fb", "http://h/a%2Fb"], id="the case of an escape"),
        pytest.param(["http://h/é", "http://h/%C3%A9", "http://h/%c3%a9"], id="other alphabets"),
        pytest.param(["http://example.test/", "http://EXAMPLE.test./", "http://example.test.:80/"], id="dot and case of a host"),
        pytest.param(["http://h:81/", "http://h.:81/"], id="dot of a host with a port"),
        pytest.param(["http://h/?a", "http://h/?a=", "http://h/?&a&"], id="empty values"),
        pytest.param(["http://h/?a=&a", "http://h/?a&a="], id="empty values, twice"),
        pytest.param(["http://h/?b=1&a=2", "http://h/?a=2&b=1"], id="order"),
        pytest.param(["http://h/100%", "http://h/100%25"], id="a stray per cent sign"),
        pytest.param(
            ["http://h/x?id=1", "http://h/x?utm_source=a&id=1&UTM_Campaign=b&gclid=1", "http://h/x?id=1&utm%5Fid"], id="(34e)"
        ),
        pytest.param(["http://h/x", "http://h/x;jsessionid=0A.node1", "http://h/x;JSESSIONID=1;jsessionid=2?utm_id=1"], id="(34a)"),
        pytest.param(["http://h/a/x", f"http://h/a/(S({'ab1' * 8}))/x", f"http://h/(S({'zz9' * 8}))/a/x"], id="ASP.NET (34b)"),
        pytest.param(
            ["http://h/x", "http://h/x?PHPSESSID=1", f"http://h/x?sid={'0f' * 16}", f"http://h/x?s={'0F' * 16}"], id="(34c)"
        ),
    ],
)
def test_these_are_one_page(same: list[str]) -> None:
    assert len({identity(requested(url)) for url in same}) == 1


@pytest.mark.parametrize(
    "apart",
    [
        pytest.param(["http://h/a/b", "http://h/a%2Fb"], id="an escaped slash"),
        pytest.param(["http://h/%2e", "http://h/%252e", "http://h/%25252e"], id="escapes of escapes"),
        pytest.param(["http://h/?a=b+c", "http://h/?a=b%20c", "http://h/?a=b%2Bc"], id="plus and blank"),
        pytest.param(["http://h/a", "http://h/A"], id="the case of a path"),
        pytest.param(["http://h/a", "http://h/a/", "http://h//a"], id="slashes"),
        pytest.param(["http://h/", "https://h/", "http://www.h/", "http://h:8080/"], id="schemes, hosts and ports"),
        pytest.param(["http://h/", "http://h/index.html"], id="index pages"),
        pytest.param(["http://h/?a==", "http://h/?a", "http://h/?a=%3D"], id="a value of an equals sign"),
        pytest.param(["http://h/?a&a", "http://h/?a"], id="a parameter twice"),
        pytest.param(
            ["http://h/?s=shoes", "http://h/?s=boots", "http://h/?sid=12", "http://h/"], id="short names that may choose a page"
        ),
        pytest.param(["http://h/?ref=a", "http://h/?source=a", "http://h/?id=a"], id="words that may choose a page"),
        pytest.param(["http://h/..;jsessionid=1", "http://h/"], id="dots before a session id"),
        pytest.param(["http://h/a;jsessionid=1/b", "http://h/a/b"], id="a session id in the middle"),
        pytest.param(["http://h/(S(x))/a", "http://h/a"], id="brackets that are no session id"),
    ],
)
def test_these_stay_apart(apart: list[str]) -> None:
    assert len({identity(requested(url)) for url in apart}) == len(apart)


def test_the_names_of_tracking_parameters_are_in_lower_case() -> None:
    names = TRACKING | SESSIONS | MAYBE_SESSIONS

    assert names == {name.lower() for name in names}
    assert not (TRACKING | SESSIONS) & MAYBE_SESSIONS


def test_an_id_is_the_same_on_every_machine() -> None:
    assert url_id("http://example.test/").hex() == "6f09eb8ac2127e8d7d394a994ba97e38"
    assert len(url_id("é")) == URL_ID_BYTES


@pytest.mark.parametrize(
    ("url", "origin", "host", "domain"),
    [
        ("https://example.test/x?a:b@c", "https://example.test", "example.test", "example.test"),
        ("http://example.test.:8080/", "http://example.test.:8080", "example.test.", "example.test"),
        ("https://[2001:db8::1]:8443/", "https://[2001:db8::1]:8443", "[2001:db8::1]", "[2001:db8::1]"),
        ("http://127.0.0.1/", "http://127.0.0.1", "127.0.0.1", "127.0.0.1"),
    ],
)
def test_origin_host_and_domain(url: str, origin: str, host: str, domain: str) -> None:
    assert origin_of(url) == origin
    assert host_of(url) == host
    assert domain_of(url) == domain


def test_a_domain_may_be_what_is_registered() -> None:
    assert domain_of("http://a.b.example.test:81/", lambda host: ".".join(host.split(".")[-2:])) == "example.test"


class TestFinder:
    @settings(deadline=None)
    @given(
        st.lists(st.tuples(st.sampled_from([PAGE, "http://base.test/", "https://base.test/x/y", "http://other.test/"]), anything))
    )
    def test_a_link_is_what_would_be_requested(self, found: list[tuple[str, str]]) -> None:
        finder = Finder()

        for base, href in [*found, *found]:
            try:
                url = requested(href, base)
            except UrlError as refused:
                with pytest.raises(UrlError, match=f"^{refused}$"):
                    finder.resolve(base, href)
            else:
                same = identity(url)
                assert finder.resolve(base, href) == Link(url_id(same), url, domain_of(url), *family_of(same))

    def test_a_relative_link_is_read_anew_on_each_page(self) -> None:
        finder = Finder()

        links = [finder.resolve(base, href) for href in ("x", "http:x") for base in ("http://base.test/a/", "http://base.test/b/")]

        assert [link.url.removeprefix("http://base.test") for link in links] == ["/a/x", "/b/x", "/a/x", "/b/x"]

    def test_the_registered_domain_is_asked_for_once_a_site(self) -> None:
        asked: list[str] = []
        finder = Finder(lambda host: asked.append(host) or "base")  # type: ignore[func-returns-value]

        domains = {finder.resolve(PAGE, f"/{n}").domain for n in range(10)}

        assert domains == {"base"}
        assert asked == ["base.test"]

    def test_it_remembers_no_more_than_its_limit(self) -> None:
        finder = Finder()

        for n in range(SITES_KEPT * 2 + 1):
            finder.resolve(PAGE, f"http://host{n}.test/")

        assert 0 < len(finder._sites) <= SITES_KEPT


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        pytest.param("/shop?a=1&b=2", "/shop?c=3&d=4&a=1", True, id="combinations of one path"),
        pytest.param("/shop?a=1&b=2", "/shop?a=1", True, id="and what they are made of"),
        pytest.param("/shop?a=1&b=2", "/shoes?a=1&b=2", False, id="another path"),
        pytest.param("/shop?a=1&b=2", "http://other.test/shop?a=1&b=2", False, id="another host"),
        pytest.param("/shop?a=1&a=2", "/shop?a=2&b=1", True, id="a name that stands there twice"),
    ],
)
def test_urls_that_differ_in_their_query_alone_are_a_family(one: str, other: str, same: bool) -> None:
    (ours, _), (theirs, _) = (family_of(identity(requested(text, PAGE))) for text in (one, other))

    assert ours
    assert theirs
    assert (ours == theirs) is same


@pytest.mark.parametrize("text", ["/page?id=7", "/page?id=7&utm_source=mail", "/a&b?id=7", "/page?id=7&&"])
def test_a_single_parameter_is_no_combination(text: str) -> None:
    family, combines = family_of(identity(requested(text, PAGE)))

    assert family
    assert not combines


@pytest.mark.parametrize("text", ["/page", "/page?", "/a&b", "/page?utm_source=mail"])
def test_a_url_without_a_query_has_no_family(text: str) -> None:
    assert family_of(identity(requested(text, PAGE))) == (b"", False)
