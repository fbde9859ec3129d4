"""Parsing: what a page's markup says, and that no page makes it fail."""

import time

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from services.worker.guard import refusal
from services.worker.parse import TITLE_LENGTH_MAX, Parsed, parse


def test_a_page_is_read_in_one_go() -> None:
    page = parse(
        """<!doctype html><html><head><title> On
        spiders </title><base href="/web/"><meta name="robots" content="noindex">
        <script>var a = "<a href='/script'>"</script></head>
        <body><h1>Spiders</h1><p>They <b>spin</b>.</p><a href="one.html">One</a>
        <a rel=nofollow href=two.html>Two</a></body></html>"""
    )

    assert page == Parsed(
        title="On spiders",
        text="Spiders They spin . One Two",
        main=page.main,
        hrefs=("one.html", "two.html"),
        nofollow=frozenset({"two.html"}),
        links_cut=False,
        base="/web/",
        refresh=None,
        robots=frozenset({"noindex"}),
    )
    assert page.main.split() == ["Spiders", "They", "spin", ".", "One", "Two"]


@pytest.mark.parametrize(
    "html",
    [
        pytest.param("<header>Site <nav>Menu</nav></header><p>Article</p><footer>Legal</footer>", id="by element"),
        pytest.param("<nav>One<nav>inside another</nav></nav><main>Article</main><aside>See also</aside>", id="within one another"),
        pytest.param("<div role=Navigation>Menu</div><p>Article</p><div role=contentinfo>Legal</div>", id="by role"),
        pytest.param("<div id=Header>Site</div><div id=sidebar>See<b id=menu>also</b></div><p id=article>Article</p>", id="by id"),
        pytest.param("<div class='wide sidebar'>See also</div><p class=header>Article</p><p class=footer>Legal</p>", id="by class"),
    ],
)
def test_what_is_marked_as_the_sites_own_is_not_part_of_the_main_text(html: str) -> None:
    page = parse(html)

    assert page.main.split() == ["Article"]
    assert len(page.text.split()) > 1


@pytest.mark.parametrize(
    ("html", "hrefs"),
    [
        pytest.param("<a href=1></a><area href=2><A HREF='3'></A>", ("1", "2", "3"), id="a and area, in the page's order"),
        pytest.param("<frameset><frame src=1><frame src=2></frameset>", ("1", "2"), id="frames"),
        pytest.param("<iframe src=1></iframe><iframe srcdoc='<a href=x>'></iframe>", ("1",), id="iframes, not their documents"),
        pytest.param("<svg><a href=1></a><a xlink:href=2></a><use href=x /></svg>", ("1", "2"), id="links in drawings"),
        pytest.param("<math><mrow href=1><mi>x</mi></mrow></math>", ("1",), id="links in formulas"),
        pytest.param("<noscript><a href=1></a></noscript>", ("1",), id="links for those without scripts"),
        pytest.param("<a href=1></a><a href=2></a><a href=1></a>", ("1", "2"), id="each once"),
        pytest.param("<a href></a><a name=x></a><a></a>", ("",), id="an empty one is a link to the page"),
        pytest.param("<a href='a&amp;b&#47;c&copy'>", ("a&b/c©",), id="character references are read"),
        pytest.param("<a href=' x\n'>", (" x\n",), id="blanks are left to who resolves it"),
        pytest.param("<template><a href=x></a></template>", (), id="none in templates"),
        pytest.param("<div><template shadowrootmode=open><a href=x></a></template></div>", (), id="none in shadows"),
        pytest.param("<!-- <a href=x> --><!--[if IE]><a href=x><![endif]-->", (), id="none in comments"),
        pytest.param("<svg><![CDATA[<a href=x>]]></svg><![CDATA[<a href=x>]]>", (), id="none in sections of characters"),
        pytest.param(
            "<script>'<a href=x>'</script><title><a href=x></title><textarea><a href=x></textarea>", (), id="none in text"
        ),
        pytest.param("<form action=x><img srcset=x><p data-href=x><q cite=x><link href=x>", (), id="nothing else is a link"),
        pytest.param("<span href=x><button href=x>", (), id="href is not a link everywhere"),
    ],
)
def test_links_are_what_a_reader_could_follow(html: str, hrefs: tuple[str, ...]) -> None:
    assert parse(html).hrefs == hrefs


def test_no_more_links_are_kept_than_the_limit() -> None:
    html = "".join(f"<a href={number}>" for number in range(10))

    assert parse(html, max_links=10).links_cut is False
    assert parse(html * 2, max_links=10).links_cut is False
    cut = parse(html + "<a rel=nofollow href=x>", max_links=3)
    assert (cut.hrefs, cut.nofollow, cut.links_cut) == (("0", "1", "2"), frozenset(), True)
    assert parse(html, max_links=0).hrefs == ()


@pytest.mark.parametrize(
    ("html", "nofollow"),
    [
        pytest.param("<a href=1 rel='noopener NoFollow ugc'>", {"1"}, id="among other words, in any case"),
        pytest.param("<a href=1 rel=nofollow><a href=1>", set(), id="not if it is followed elsewhere, later"),
        pytest.param("<a href=1><a href=1 rel=nofollow>", set(), id="not if it is followed elsewhere, before"),
        pytest.param("<a href=1 rel=nofollower><a href=2 rel>", set(), id="by the whole word"),
    ],
)
def test_nofollow_is_a_link_that_is_marked_wherever_it_stands(html: str, nofollow: set[str]) -> None:
    assert parse(html).nofollow == nofollow


@pytest.mark.parametrize(
    ("html", "base"),
    [
        pytest.param("<base href=/a/>", "/a/", id="relative"),
        pytest.param("<base target=x><base href=//other/><base href=/b/>", "//other/", id="the first that has one"),
        pytest.param(
            "<base href='data:,x'><base href=' java\nscript:x'><base href=HTTPS://x/>", "HTTPS://x/", id="that can be one"
        ),
        pytest.param("<a href=1></a><base href=/late/>", "/late/", id="also behind links"),
        pytest.param("<base href>", "", id="an empty one is the page"),
        pytest.param("<base target=x><!-- <base href=x> -->", None, id="none"),
    ],
)
def test_the_base_is_the_first_that_can_be_one(html: str, base: str | None) -> None:
    assert parse(html).base == base


@pytest.mark.parametrize(
    ("content", "target"),
    [
        pytest.param("0;url=/next", "/next", id="at once"),
        pytest.param(" 10 ; URL = ' /next ' trailing", "/next", id="quotes and blanks"),
        pytest.param('3,url="/next"x', "/next", id="comma and quotes"),
        pytest.param("0.5 /next", "/next", id="a fraction, and only a blank"),
        pytest.param(".5;/next", "/next", id="no whole seconds"),
        pytest.param("0;url", "url", id="a target called url"),
        pytest.param("11;url=/next", None, id="too late"),
        pytest.param("9" * 10_000 + ";url=/next", None, id="much too late"),
        pytest.param("5", None, id="the page itself"),
        pytest.param("5;url=", None, id="the page itself, in more words"),
        pytest.param("NaN;url=/next", None, id="no number"),
        pytest.param("-1;url=/next", None, id="a negative one"),
        pytest.param("0url=/next", None, id="nothing in between"),
        pytest.param("", None, id="nothing"),
    ],
)
def test_a_refresh_leads_on_if_it_is_due_soon(content: str, target: str | None) -> None:
    assert parse(f"<meta http-equiv=Refresh content='{content.replace(chr(39), '&#39;')}'>").refresh == target


def test_a_refresh_for_those_without_scripts_or_in_a_comment_is_none() -> None:
    refresh = "<meta http-equiv=refresh content='0;url=/x'>"

    assert parse(f"<noscript>{refresh}</noscript>").refresh is None
    assert parse(f"<body><noscript><p>{refresh}</p></noscript>").refresh is None
    assert parse(f"<!-- {refresh} --><template>{refresh}</template>").refresh is None
    assert parse(f"<noscript>{refresh}</noscript><p>{refresh.replace('/x', '/y')}").refresh == "/y"


@pytest.mark.parametrize(
    ("html", "robots"),
    [
        pytest.param("<META NAME=Robots CONTENT='NoIndex, nofollow'>", {"noindex", "nofollow"}, id="in any case"),
        pytest.param(
            "<meta name=robots content=noindex><meta name=gossamer content=nofollow>", {"noindex", "nofollow"}, id="all, us"
        ),
        pytest.param("<meta name=otherbot content=noindex>", set(), id="not for others"),
        pytest.param("<body><p><meta name=robots content=none>", {"none"}, id="in the body"),
        pytest.param("<meta name=robots content><meta name=robots>", set(), id="empty"),
    ],
)
def test_what_the_page_asks_of_robots_is_gathered(html: str, robots: set[str]) -> None:
    assert parse(html).robots == robots


@pytest.mark.parametrize(
    ("html", "title"),
    [
        pytest.param("<title>\n a &amp; b \t c</title>", "a & b c", id="single blanks"),
        pytest.param("<title>one</title><title>two</title>", "one", id="the first"),
        pytest.param("<head><noscript><img></noscript><title>late</title>", "late", id="also behind the head"),
        pytest.param("<svg><g><title>icon</title></g></svg><title>page</title>", "page", id="not of a drawing"),
        pytest.param("<svg><title>icon</title></svg>", "", id="of a drawing alone is none"),
        pytest.param("<title>" + "x" * 5000, "x" * TITLE_LENGTH_MAX, id="bounded"),
        pytest.param("", "", id="none"),
    ],
)
def test_the_title_is_the_pages_own(html: str, title: str) -> None:
    assert parse(html).title == title


ARTICLE = "<h1>Spiders</h1><p>They spin <a href=/silk>silk</a>.</p>"


@pytest.mark.parametrize(
    "html",
    [
        pytest.param(f"<body>{ARTICLE}</body>", id="plain"),
        pytest.param(f"<body>\n\n  {ARTICLE.replace('><', '>  <')}\t</body>", id="indented otherwise"),
        pytest.param(
            f"<title>x</title><style>p {{}}</style><body><script>x</script>{ARTICLE}<svg><text>x</svg>", id="with scripts"
        ),
        pytest.param(f"<head><noscript><img></noscript><title>x</title><body>{ARTICLE}", id="with a head that ends early"),
        pytest.param(f"{ARTICLE}<noscript>x</noscript><iframe>x</iframe><template>x</template><!--x-->", id="with unseen parts"),
    ],
)
def test_the_same_article_has_the_same_text(html: str) -> None:
    assert parse(html).text == "Spiders They spin silk ."


def test_a_page_of_frames_has_no_text() -> None:
    assert parse("<frameset><frame src=a></frameset>").text == ""


def test_what_the_guard_lets_through_is_read_in_no_time() -> None:
    pages = [
        "".join(f"<a href={number}>x</a>" for number in range(33_000)),
        "<div>" * 500 + "".join(f"<x href={number}>x</x>" for number in range(20_000)),
        "<div>" * 500 + "<meta http-equiv=refresh>" * 10_000,
        "<svg>" + "<g>" * 500 + "<title></title>" * 20_000,
        "<script></script>" * 20_000,
        "<a href='" + "x" * 490_000 + "'>",
    ]
    for html in pages:
        assert refusal(html) is None
        began = time.process_time()
        parse(html)
        assert time.process_time() - began < 1.5  # a tenth of it on an idle machine


TAGS = ["a", "base", "meta", "title", "svg", "math", "noscript", "template", "table", "iframe", "frameset", "p", "b"]
TAGS += ["html", "head", "body", "nav"]
THE_SITES = ["class=sidebar", "class='x footer'", "id=nav", "role=banner"]
MARKUP = st.lists(
    st.one_of(
        st.sampled_from(TAGS).map("<{}>".format),
        st.sampled_from(TAGS).map("</{}>".format),
        st.builds("<{} {}>".format, st.sampled_from(TAGS), st.sampled_from(THE_SITES)),
        st.builds("<a href={}>".format, st.text(max_size=9)),
        st.builds("<meta http-equiv=refresh content='{}'>".format, st.text(max_size=9)),
        st.builds("<base href='{}'>".format, st.text(max_size=9)),
        st.text(max_size=9),
    ),
    max_size=30,
).map("".join)


@settings(deadline=None)
@given(MARKUP)
@example("<html class=sidebar><p>All of it is the site's.")
@example("<body class=sidebar><nav id=nav><nav id=nav>")
def test_no_page_makes_it_fail(html: str) -> None:
    page = parse(html)

    assert page == parse(html)
    assert page.text == " ".join(page.text.split())
    assert page.nofollow <= set(page.hrefs)
    (page.text + page.title + "".join(page.hrefs)).encode()  # no lone surrogates: all of it can be stored
