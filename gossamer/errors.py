"""Gossamer's errors, sorted by what the one who catches them does.

    GossamerError
    ├── SettingsError          the operator must change something; the process ends with the setting's name
    ├── UrlError               this text is no URL that can be asked for: refused, with the reason
    ├── MessageError           these bytes are no message of ours: set aside as a dead letter
    ├── EngineUnavailable      a server or the disk is away, or full: back off, try again
    │   ├── LedgerUnavailable
    │   ├── BrokerUnavailable
    │   └── BlobsUnavailable
    ├── Fenced                 our lease is over: cut requests, drop everything, register again
    ├── NoCrawl                there is no such crawl (any more)
    └── ModuleFailed           a plug-in failed on one page: recorded, the crawl goes on

A page that can't be had is no error but an `Outcome`. A broken promise of our own code is an `assert`, and the process stops.
Adapters turn their drivers' errors into these, `from` the original.
"""


class GossamerError(Exception):
    """The root: whatever Gossamer raises on purpose."""


class SettingsError(GossamerError):
    """A setting is wrong; the text names it, says what is accepted, and fits on one line."""


class UrlError(GossamerError):
    """A text that is no usable URL."""


class MessageError(GossamerError):
    """Bytes that are no message of ours, or of a version that we don't know."""


class EngineUnavailable(GossamerError):
    """Something that the engine stands on does not answer. Nothing was lost: the same call may be made again."""

    def __init__(self, text: str, *, full: bool = False) -> None:
        """`full`: it is there, and has no room for more."""
        super().__init__(text)
        self.full = full


class LedgerUnavailable(EngineUnavailable):
    """The ledger can't be read or written now. The verb changed nothing, or is safe to repeat."""


class BrokerUnavailable(EngineUnavailable):
    """The broker can't be reached. Hints may be lost; the ledger makes up for them."""


class BlobsUnavailable(EngineUnavailable):
    """The blob store can't be read or written now. No reference was given out for what was not stored."""


class Fenced(GossamerError):
    """A verb came with an epoch that is not the newest, or with a lease that is over. It changed nothing."""


class NoCrawl(GossamerError):
    """The crawl was never created, or its time to live is over."""


class ModuleFailed(GossamerError):
    """A plug-in raised or hung on one page."""
