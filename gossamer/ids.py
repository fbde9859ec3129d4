"""The names of things: ids that must not be mixed up, though two of them are plain numbers."""

from typing import NewType

#: 128-bit BLAKE2b of a URL's identity: 16 bytes, which a hostile site can't make collide.
UrlId = NewType("UrlId", bytes)

#: 0 … N-1 without gaps; held by lease, so that it is nobody's when its worker is dead.
WorkerId = NewType("WorkerId", int)

#: Grows with each registration of a worker id. A verb with an old one is fenced.
Epoch = NewType("Epoch", int)

#: Names a crawl: its directory, its key prefix, its queues. Letters, digits and hyphens.
CrawlId = NewType("CrawlId", str)

URL_ID_BYTES = 16
