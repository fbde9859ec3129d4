"""Keys of URLs in an index: those that other tools compute, or they would look in vain."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gossamer.errors import UrlError
from gossamer.urls import requested
from services.controller.export.surt import surt

SESSION = "0123456789abcdef0123456789ABCDEF"


@pytest.mark.parametrize(
    ("url", "key"),
    [
        # What the reference implementation (surt 0.3.1) says of each.
        pytest.param("http://example.com/", "com,example)/", id="the host backwards"),
        pytest.param("https://www2.Example.COM:443/a/b/", "com,example)/a/b", id="www, the scheme's port, a last slash"),
        pytest.param("https://example.com:80/", "com,example:80)/", id="another port"),
        pytest.param("http://wwwx.example.com/", "com,example,wwwx)/", id="not every www"),
        pytest.param("http://www.www.com/", "com,www)/", id="www once"),
        pytest.param("http://127.0.0.1:8043/p?q=1", "1,0,0,127:8043)/p?q=1", id="an IPv4 address, backwards too"),
        pytest.param("http://[2001:db8::1]/x", "2001:db8::1)/x", id="an IPv6 address"),
        pytest.param("http://xn--bcher-kva.example/", "example,xn--bcher-kva)/", id="an international name"),
        pytest.param("http://user:pw@example.com/", "com,example)/", id="a user"),
        pytest.param("http://example.com/A/B.html?Z=1&a=2", "com,example)/a/b.html?a=2&z=1", id="small letters, sorted"),
        pytest.param("http://example.com/x?a-b=1&a=1", "com,example)/x?a=1&a-b=1", id="sorted by name, not by text"),
        pytest.param("http://example.com/x?a=1&", "com,example)/x?&a=1", id="an empty parameter"),
        pytest.param("http://example.com/x?", "com,example)/x", id="an empty query"),
        pytest.param("http://example.com//a//b", "com,example)/a/b", id="doubled slashes"),
        pytest.param("http://example.com/a%2F/../b", "com,example)/a/b", id="dots after escapes"),
        pytest.param("http://example.com/a%20b%7Ed", "com,example)/a%20b~d", id="escaped where it must be"),
        pytest.param("http://example.com/a%2525b", "com,example)/a%25b", id="and once"),
        pytest.param("http://example.com/%E6%9D%B1", "com,example)/%e6%9d%b1", id="other scripts"),
        pytest.param("http://example.com/%zz", "com,example)/%25zz", id="no escape at all"),
        pytest.param(f"http://example.com/x?PHPSESSID={SESSION}&b=1", "com,example)/x?b=1", id="a session"),
        pytest.param(f"http://example.com/x?b=1&sid={SESSION}", "com,example)/x?&b=1", id="a session at the end"),
        pytest.param("http://example.com/x?a=1&cfid=1&cftoken=2&z=1", "com,example)/x?a=1&z=1", id="a session of two"),
        pytest.param("http://example.com/x?sid=12", "com,example)/x?sid=12", id="no session"),
        pytest.param("http://example.com/(S(abcdefghijklmnopqrstuvwx))/y.aspx", "com,example)/y.aspx", id="a session in the path"),
    ],
)
def test_a_key_is_the_one_that_other_tools_look_for(url: str, key: str) -> None:
    assert surt(url) == key


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=60))
def test_whatever_a_url_has_in_it_its_key_is_one_word(tail: str) -> None:
    try:
        url = requested(f"http://example.com/{tail}")
    except UrlError:
        return

    key = surt(url)

    assert key.isascii()
    assert not set(key) & set(map(chr, range(0x21)))
