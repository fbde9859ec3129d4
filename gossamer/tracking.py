"""Query parameters that say who came and from where, not which page it is. Data: they are left out of a URL's identity.

A wrong name here merges two pages, and one of them is never fetched; a missing name fetches one page twice, and the content check
finds that out. So a name is listed only if no site is known to mean a page by it: `ref`, `source`, `id` and `s` are not.
Names are compared in lower case. The URL that is requested keeps all of them.
"""

from typing import Final

#: Dropped whatever their value is.
TRACKING: Final = frozenset(
    {
        # click ids of advertisers and networks
        "dclid",
        "fbclid",
        "gbraid",
        "gclid",
        "gclsrc",
        "li_fat_id",
        "msclkid",
        "rdt_cid",
        "s_kwcid",
        "srsltid",
        "ttclid",
        "twclid",
        "wbraid",
        "yclid",
        "ysclid",
        # who shared it
        "igsh",
        "igshid",
        "ref_src",
        "ref_url",
        "spm",
        # newsletters
        "_hsenc",
        "_hsmi",
        "_ke",
        "mc_cid",
        "mc_eid",
        "mkt_tok",
        "ml_subscriber",
        "ml_subscriber_hash",
        "oly_anon_id",
        "oly_enc_id",
        "vero_conv",
        "vero_id",
        # analytics that hand a visitor from one site to the next
        "__hsfp",
        "__hssc",
        "__hstc",
        "_ga",
        "_gl",
        "_openstat",
    }
)

#: Dropped whatever follows: families of names that grow by a word a campaign.
TRACKING_PREFIXES: Final = ("utm_", "mtm_", "pk_", "piwik_", "matomo_", "hsa_")

#: Session ids by names that mean nothing else.
SESSIONS: Final = frozenset({"phpsessid", "jsessionid", "cfid", "cftoken"})

#: ASP appends random letters to the name itself.
SESSION_PREFIXES: Final = ("aspsessionid",)

#: Names that often mean a session and often something else (a search, a section, a talk at a conference). They count as a
#: session only with a value that looks like nothing else: 32 or more hexadecimal digits, as phpBB and vBulletin give out.
MAYBE_SESSIONS: Final = frozenset({"s", "sid", "sess", "sessid", "session", "session_id", "sessionid"})
