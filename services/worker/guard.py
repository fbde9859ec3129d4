"""The parser's guard: may this page be parsed at all?

A cap on bytes does not protect the parser. 61 KB of formatting elements cost lexbor 12 s and 2.9 GB, 500 KB of nested `<div>`
11 s, and a parse can't be stopped. All of its bad cases are quadratic, and grow with a few numbers: how many elements are open,
how many formatting elements must be opened again, how many attributes one tag has, how many options one select. So one linear
scan over the tags keeps a bound of each, and refuses at the first that is too large.

The scan reads as the tokenizer does (comments, quoted values, raw text, SVG and MathML), because what the scan skips and the
parser doesn't is where a blow-up hides. Its stack of open elements is the parser's in outline: end tags that are left out are
taken as given where HTML lets them be. What else is closed without an end tag may be open for the parser, and counts as *loose*.

Knows: how HTML is read. Must not know: bytes (they are capped before), what becomes of a refusal.
"""

import re
from collections.abc import Set
from typing import Final

import msgspec


class Limits(msgspec.Struct, frozen=True):
    """What a page may ask of the parser."""

    depth: int = 512  #: elements open at once
    loose: int = 1_500  #: elements closed by others than their own end tags
    nodes: int = 250_000  #: in the tree, some 190 bytes each; formatting elements that are opened again included
    options: int = 5_000  #: in one select
    root_attributes: int = 1_000  #: of all html and body tags together, since they end up on one element
    steps: int = 500_000  #: of looking for the elements that tags close


LIMITS: Final = Limits()

#: On one tag.
ATTRIBUTES_MAX: Final = 1_000

#: A page within these can't hurt, whatever its tags are: the worst known costs 0.2 s and 60 MB. Most pages are, and need no scan.
HARMLESS_CHARACTERS: Final = 40_000  #: one tag of so many has 10,000 attributes
HARMLESS_TAGS: Final = 4_000
HARMLESS_FORMATTING: Final = 300_000  #: formatting elements times tags, since each tag may open all of them again

TOO_DEEP: Final = "elements nested too deeply"
TOO_LOOSE: Final = "too many elements left open"
TOO_MANY_NODES: Final = "too many nodes"
TOO_MANY_ATTRIBUTES: Final = "too many attributes on one element"
TOO_MANY_OPTIONS: Final = "too many options in one select"
TANGLED: Final = "end tags too tangled"
UNCLEAR: Final = "raw text in SVG or MathML that can be read in two ways"


def refusal(html: str, limits: Limits = LIMITS) -> str | None:
    """Why this page must not be parsed; None if it may be. Takes time in proportion to its length."""
    if limits is LIMITS and _is_harmless(html):
        return None
    try:
        _Scan(html, limits).run()
    except _Refused as refused:
        return str(refused)
    return None


class _Refused(Exception):
    """The page passes a limit."""


def _is_harmless(html: str) -> bool:
    if len(html) > HARMLESS_CHARACTERS:
        return False
    tags = html.count("<")
    # Every formatting element that comes back is a tag, and so is what makes it come back.
    if tags * tags / 2 <= HARMLESS_FORMATTING:
        return True
    return tags <= HARMLESS_TAGS and len(_FORMATTING_TAGS(html)) * tags <= HARMLESS_FORMATTING


class _Formatting(msgspec.Struct):
    """An entry of the parser's list of active formatting elements: what it opens again when something else has closed it."""

    name: str
    tag: str  #: the whole tag: of those that are the same in all, the parser keeps three
    depth: int  #: its place on the stack, or the least depth since it lost that
    is_open: bool = True


class _Room(msgspec.Struct, frozen=True):
    """A table, a cell and the like: end tags in it close nothing that is outside."""

    at: int  #: its place on the stack
    formatting: int  #: how many formatting elements there were before
    forgets: bool  #: those in it are forgotten at its end


class _Scan:
    """What the parser would hold at this place of the page.

    `open` is its stack of open elements, by name. SVG or MathML begins at `foreign`. From `unsure` on either reading is possible,
    since HTML may begin again inside of them.
    """

    def __init__(self, html: str, limits: Limits) -> None:
        self.html = html
        self.limits = limits
        self.open: list[str] = []
        self.rooms = [_OUTSIDE]
        self.formatting: list[_Formatting] = []
        self.foreign: int | None = None
        self.unsure: int | None = None
        self.paragraphs = 0
        self.loose = 0
        self.nodes = 0
        self.options = 0
        self.root_attributes = 0
        self.steps = 0

    def run(self) -> None:
        position = 0
        while position < len(self.html):
            position = self._read(position)

    def _read(self, position: int) -> int:
        """Reads tags up to a place behind which something is to be skipped, and says where to go on."""
        open, formatting, nodes_max = self.open, self.formatting, self.limits.nodes
        for token in _TOKENS(self.html, position):
            kind = token.lastindex
            if kind is None:
                continue  # a comment, or what is read as one
            if kind > _LEAF:
                return self._behind(token)
            name = token[1]
            if name.isascii():  # the parser knows ASCII letters alone; to Python U+212A is a k
                name = name.lower()
            self.nodes += 2 * (kind - 1) + len(formatting)
            if self.nodes > nodes_max:
                raise _Refused(TOO_MANY_NODES)
            if kind == _LEAF:
                if not (name in _PLAIN_LEAVES and self._in_html and (name != "a" or not formatting)):
                    self._start(name, token)
                    self._end(name)
            elif name in _PLAIN_ENDS and open and open[-1] == _PLAIN_ENDS[name]:
                open.pop()
            elif name in _PLAIN_STARTS and self._in_html and not (self.paragraphs and name in _CLOSES_P):
                self._push(name)
            elif name[0] == "/":
                self._end(name[1:])
            elif name in _RAW and self._is_raw(name, token.end()):
                return self._raw_end(name, token.end())
            else:
                self._start(name, token)
        return len(self.html)

    # --- What is skipped ---

    def _behind(self, token: re.Match[str]) -> int:
        """Behind a CDATA section, which in HTML is a comment."""
        if token.lastindex != _IS_CDATA:
            raise _Refused(TOO_MANY_ATTRIBUTES)
        if self._in_html:
            return self._or_end(self.html.find(">", token.end()))
        end = self._or_end(self.html.find("]]>", token.end()))
        if self.unsure is not None and "<" in self.html[token.end() : end]:
            raise _Refused(UNCLEAR)
        return end

    def _is_raw(self, name: str, position: int) -> bool:
        """Whether what follows is text up to its end tag: in HTML it is, in SVG and MathML it is not."""
        if self.unsure is None:
            return self.foreign is None
        if "<" in _CDATA("", self.html[position : self._raw_end(name, position)]):
            raise _Refused(UNCLEAR)
        return True

    def _raw_end(self, name: str, position: int) -> int:
        """Where the end tag of raw text begins, or the page's end."""
        if name == "plaintext":
            return len(self.html)
        if name == "script":
            return self._script_end(position)
        end = _RAW[name](self.html, position)
        return len(self.html) if end is None else end.start()

    def _script_end(self, position: int) -> int:
        """In a comment in a script a second script may begin, which hides end tags up to its own."""
        in_comment = in_second = False
        while (mark := _RAW["script"](self.html, position)) is not None:
            position = mark.end()
            match mark[0][:4]:
                case "<!--":
                    in_comment = True
                    position -= 2  # `<!-->` is a whole comment
                case "-->":
                    in_comment = in_second = False
                case tag if tag[1] != "/":  # <script, and not </script
                    in_second = in_comment
                case _ if in_second:
                    in_second = False
                case _:
                    return mark.start()
        return len(self.html)

    def _or_end(self, found: int) -> int:
        return len(self.html) if found < 0 else found

    # --- Start tags ---

    def _start(self, name: str, token: re.Match[str]) -> None:
        if name in _ROOT:
            self.root_attributes += len(_ATTRIBUTES(_tag(token)))
            if self.root_attributes > self.limits.root_attributes:
                raise _Refused(TOO_MANY_ATTRIBUTES)
        elif self.unsure is not None:
            if name in _FORMATTING:
                self._start_formatting(name, _tag(token))
            elif name not in _NEVER_OPEN:
                self._push(name)
        elif self.foreign is None:
            self._start_html(name, token)
        elif name in _BREAKS_OUT:
            self._cut(self.foreign)
            self._start_html(name, token)
        elif token[2][-1:] != "/":
            self._push(name)
            if name in _INTEGRATION or (name == "annotation-xml" and "html" in _tag(token).lower()):
                self.unsure = len(self.open) - 1
            elif name == "font":  # ends SVG, or doesn't, by its attributes
                self.unsure = self.foreign

    def _start_html(self, name: str, token: re.Match[str]) -> None:
        if self.paragraphs and name in _CLOSES_P:
            self._close(_P, _BUTTON_SCOPE)
        if name in _FORMATTING:
            self._start_formatting(name, _tag(token))
        elif name in _VOID:
            if name == "col" and "template" in self.open:
                self.unsure = self.open.index("template")  # where most tags are ignored from now on, those of raw text too
        elif name in _IN_TABLE:
            self._start_in_table(name)
        elif name in _FOREIGN:
            if token[2][-1:] != "/":
                self._push(name)
                self.foreign = len(self.open) - 1
        else:
            if name in _REPLACES:
                self._close(*_REPLACES[name])
            elif (
                name in _REPLACES_LAST
                and self.open
                and self.open[-1] in _REPLACES_LAST[name]
                and (name not in _RUBY or self._find({"ruby"}, _SCOPE) is not None)
            ):
                self._cut(len(self.open) - 1)
            self._push(name)
            if name == "option":
                self._count_option()
            elif name == "frameset":
                self.unsure = -1  # for good

    def _start_in_table(self, name: str) -> None:
        """What is open in the table and can't hold it is closed. Outside of a table it is ignored, but for a table itself."""
        closed, sought = _IN_TABLE[name]
        at = self._find(sought, _NOWHERE)
        if at is not None and self.open[at] == "template":
            self.unsure = at
        elif at is not None and self.open[at] in closed:
            self._cut(at)
        elif at is not None and name != "table":  # which may stand in a cell, and in what is open there
            self._cut(at + 1, rightly=0)
        if at is not None or name == "table":
            self._push(name)

    def _start_formatting(self, name: str, tag: str) -> None:
        if name == "a" or name == "nobr":  # there is only ever one
            self._end_formatting(name)
        formatting = self.formatting
        if not formatting or sum(each.tag == tag for each in formatting[self.rooms[-1].formatting :]) < _SAME_MAX:
            formatting.append(_Formatting(name, tag, len(self.open)))
        self._push(name)

    def _count_option(self) -> None:
        self.options += 1
        if self.options > self.limits.options:
            raise _Refused(TOO_MANY_OPTIONS)

    # --- End tags ---

    def _end(self, name: str) -> None:
        if self.foreign is not None and self.unsure is None and self._end_foreign(name):
            return
        if name in _FORMATTING and self._end_formatting(name):
            return
        stops = _SPECIAL if self.unsure is not None else _ENDS.get(name, _SPECIAL)
        if self._close(_HEADINGS if name in _HEADINGS else {name}, stops) and name == "select":
            self.options = 0

    def _end_foreign(self, name: str) -> bool:
        """Whether that is all. The end tag of an element around SVG or MathML ends them too, most often."""
        assert self.foreign is not None
        if name == "p" or name == "br":
            self._cut(self.foreign)
            return False
        at = self._find({name}, _NOWHERE)
        if at is not None and at >= self.foreign:
            self._cut(at)
            return True
        self.unsure = self.foreign
        return False

    def _end_formatting(self, name: str) -> bool:
        """Whether there was one to end. The adoption agency algorithm of the HTML Standard, by what it leaves open."""
        open, formatting = self.open, self.formatting
        for at in range(len(formatting) - 1, self.rooms[-1].formatting - 1, -1):
            if formatting[at].name == name:
                break
        else:
            return False
        entry = formatting[at]
        if len(open) - 1 - entry.depth > _BLOCKS_MAX:
            return True  # it gives up before, and the element stays
        del formatting[at]
        if entry.is_open and entry.depth == len(open) - 1:
            open.pop()
        elif entry.is_open:
            blocks = [each for each in open[entry.depth + 1 :] if each in _SPECIAL]
            self._cut(entry.depth, for_certain=True)
            open.extend(blocks)
            self.paragraphs += blocks.count("p")
        else:
            self.loose -= 1
        return True

    # --- The stack ---

    @property
    def _in_html(self) -> bool:
        return self.foreign is None and self.unsure is None

    def _push(self, name: str) -> None:
        open = self.open
        if name in _ROOMS:
            forgets = name in _MARKERS and self._in_html
            self.rooms.append(_Room(len(open), len(self.formatting), forgets))
        elif name == "p":
            self.paragraphs += 1
        open.append(name)
        if len(open) > self.limits.depth:
            raise _Refused(TOO_DEEP)

    def _close(self, names: Set[str], stops: Set[str]) -> bool:
        """Closes the last of these that is open, and all in it. Whether there was one above any of `stops`."""
        at = self._find(names, stops)
        if at is not None:
            self._cut(at)
        return at is not None

    def _find(self, names: Set[str], stops: Set[str]) -> int | None:
        open = self.open
        for at in range(len(open) - 1, -1, -1):
            name = open[at]
            if name in names:
                break
            if name in stops:
                at = -1 - at
                break
        else:
            at = -1
        self.steps += len(open) - abs(at)
        if self.steps > self.limits.steps:
            raise _Refused(TANGLED)
        return at if at >= 0 else None

    def _cut(self, at: int, *, rightly: int = 1, for_certain: bool = False) -> None:
        """Closes all from this place on: the first of them rightly, by a tag that means it, the others because they are in it.

        `for_certain`: the parser closes these others too.
        """
        dropped = self.open[at:]
        del self.open[at:]
        self.paragraphs -= dropped.count("p")
        if len(dropped) > rightly:
            self.loose += _loose(dropped[rightly:], for_certain)
        while self.rooms[-1].at >= at:
            room = self.rooms.pop()
            if room.forgets:
                self.loose -= len(self.formatting) - room.formatting
                del self.formatting[room.formatting :]
        if self.loose > self.limits.loose:
            raise _Refused(TOO_LOOSE)
        for each in self.formatting:
            if each.depth >= at:
                each.depth, each.is_open = at, False
        if self.unsure is not None and self.unsure >= at:
            self.unsure = None
        if self.foreign is not None and self.foreign >= at:
            self.foreign = None


def _loose(dropped: list[str], for_certain: bool) -> int:
    """How many of these may be open for the parser. Formatting elements are, until they have an end tag of their own."""
    formatting = sum(name in _FORMATTING for name in dropped)
    if for_certain:
        return formatting
    implied = sum(name in _IMPLIED for name in dropped)
    return len(dropped) - implied + max(0, implied - _IMPLIED_FREE)


def _tag(token: re.Match[str]) -> str:
    return token.string[token.start() : token.end(2)]


_OUTSIDE: Final = _Room(-1, 0, False)

#: The adoption agency algorithm ends after eight rounds, one for each block and one for the element.
_BLOCKS_MAX: Final = 7
_SAME_MAX: Final = 3

#: So many elements whose end tags may be left out can be closed by one tag, without a doubt: `</table>` ends a row and a cell.
_IMPLIED_FREE: Final = 8


# --- Tokens (HTML Standard, section 13.2.5). Every quantifier is possessive: none of them is ever tried a second time. ---

_WS: Final = r"\t\n\f\r "
_NAME: Final = rf"[a-zA-Z][^{_WS}/>]*+"
_VALUE: Final = rf"""(?:"[^"]*+"?+|'[^']*+'?+|[^{_WS}>"'][^{_WS}>]*+)?+"""
_ATTRIBUTE: Final = rf"(?:=|[^{_WS}/>=])[^{_WS}/>=]*+(?:[{_WS}]*+=[{_WS}]*+{_VALUE})?+"
_TOKENS: Final = re.compile(
    # A tag; behind it what is in the element, if that is text alone: of such leaves, most of a page's elements, nothing stays open.
    rf"<(?:(/?{_NAME})(?:[{_WS}/]*+{_ATTRIBUTE}){{0,{ATTRIBUTES_MAX}}}+([{_WS}/]*+)(?:>([^<]*+</\1[{_WS}]*+>)?+|\Z)"
    r"|!--(?:-?>|(?:[^-]++|-(?!-!?>))*+(?:--!?>|\Z))"
    r"|(!\[CDATA\[)"
    r"|[!?][^>]*+|/[^a-zA-Z>][^>]*+"
    r"|(/?[a-zA-Z]))"  # a tag of more attributes than that
).finditer
_LEAF: Final = 3
_IS_CDATA: Final = 4
_ATTRIBUTES: Final = re.compile(rf"[{_WS}/]*+{_ATTRIBUTE}").findall
_CDATA: Final = re.compile(r"<!\[CDATA\[[^<]*+").sub

_RAW: Final = {
    name: re.compile(rf"</(?ai:{name})(?=[{_WS}/>])").search
    for name in ("iframe", "noembed", "noframes", "plaintext", "style", "textarea", "title", "xmp")
} | {
    # Each of these begins with a character as it stands, and not with a group: so all other characters are passed over at once.
    "script": re.compile(rf"<!--|-->|<(?ai:script)(?=[{_WS}/>])|</(?ai:script)(?=[{_WS}/>])").search
}


# --- Elements, by what the HTML Standard says of them ---


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


_NOWHERE: Final = _names("")
_P: Final = _names("p")
_ROOT: Final = _names("html head body")
_FOREIGN: Final = _names("svg math")
_HEADINGS: Final = _names("h1 h2 h3 h4 h5 h6")
_FORMATTING: Final = _names("a b big code em font i nobr s small strike strong tt u")
_FORMATTING_TAGS: Final = re.compile(rf"<(?:b|big|code|em|font|i|s|small|strike|strong|tt|u)[{_WS}/>]", re.I | re.A).findall
_VOID: Final = _names("area base basefont bgsound br col embed frame hr image img input keygen link meta param source track wbr")
#: Not even in SVG, which they end.
_NEVER_OPEN: Final = _names("br embed hr img meta")
_BREAKS_OUT: Final = (
    _HEADINGS
    | _NEVER_OPEN
    | _names(
        "b big blockquote body center code dd div dl dt em head i li listing menu nobr ol p pre ruby s small span strong strike sub"
        " sup table tt u ul var"
    )
)
#: In these HTML may begin again.
_INTEGRATION: Final = _names("foreignobject desc title mi mo mn ms mtext")

_MARKERS: Final = _names("applet caption marquee object td template th")
_ROOMS: Final = _MARKERS | _INTEGRATION | _names("annotation-xml select table")
_SCOPE: Final = _ROOMS | _ROOT
_BUTTON_SCOPE: Final = _SCOPE | {"button"}
_LIST_SCOPE: Final = _SCOPE | {"ol", "ul"}
_TABLE_SCOPE: Final = _names("table template")

_BLOCKS: Final = _names(
    "address article aside blockquote center details dialog dir div dl fieldset figcaption figure footer header hgroup main menu"
    " nav ol search section summary ul listing pre"
)
_CLOSES_P: Final = _BLOCKS | _HEADINGS | _names("p form li dd dt plaintext table hr xmp")
_SPECIAL: Final = (
    _SCOPE
    | _BLOCKS
    | _HEADINGS
    | _VOID - {"image"}
    | set(_RAW)
    | _names("p li dd dt form button colgroup tbody tfoot thead tr noscript frameset")
)

#: End tags that reach further than to the next special element, with what stops them.
_ENDS: Final = (
    dict.fromkeys(_BLOCKS | _HEADINGS | _names("applet button dd dt form marquee object select"), _SCOPE)
    | dict.fromkeys(_names("caption colgroup tbody td tfoot th thead tr"), _TABLE_SCOPE)
    | {"p": _BUTTON_SCOPE, "li": _LIST_SCOPE, "table": _names("template"), "template": _NOWHERE}
)

#: Start tags that close another element first: which, and what stops them.
_ITEM_STOPS: Final = _SPECIAL - {"address", "div", "p"}
_REPLACES: Final = {
    "li": (_names("li"), _ITEM_STOPS),
    "dd": (_names("dd dt"), _ITEM_STOPS),
    "dt": (_names("dd dt"), _ITEM_STOPS),
    "button": (_names("button"), _SCOPE),
}
_RUBY: Final = _names("rb rp rt rtc")
_REPLACES_LAST: Final = (
    dict.fromkeys(_HEADINGS, _HEADINGS) | dict.fromkeys(_RUBY, _RUBY) | {"option": _names("option"), "optgroup": _names("option")}
)
#: In tables: what is closed with all in it, and what else is looked for, because all in it is closed.
_SECTIONS: Final = _names("tbody tfoot thead")
_CELLS: Final = _names("td th")
_IN_TABLE: Final = {
    "table": (_names("table"), _CELLS | _names("caption table template")),
    "td": (_CELLS, _CELLS | _SECTIONS | _names("table template tr")),
    "th": (_CELLS, _CELLS | _SECTIONS | _names("table template tr")),
    "tr": (_names("tr"), _SECTIONS | _names("table template tr")),
} | dict.fromkeys(_SECTIONS | {"caption", "colgroup"}, (_NOWHERE, _TABLE_SCOPE))

#: Elements whose end tags may be left out.
_IMPLIED: Final = _RUBY | _SECTIONS | _names("caption colgroup dd dt li optgroup option p td th tr")

#: Tags for which nothing is to be done beyond putting the element on the stack, and taking it off if it is the last.
_PLAIN_STARTS: Final = _BLOCKS | _names("abbr cite del form ins kbd label mark noscript q samp span sub sup time var")
_PLAIN_LEAVES: Final = _FORMATTING | set(_RAW) | _PLAIN_STARTS - _CLOSES_P
_PLAIN_ENDS: Final = {f"/{name}": name for name in _PLAIN_STARTS | _HEADINGS | _names("button dd dt g li option path tr")}
