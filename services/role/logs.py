"""A role's log, on stderr: a line for each event, for people or as JSON. Texts may come from the web: nothing is written raw."""

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Final

from gossamer.settings import Log


def start_logging(log: Log) -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Json() if log is Log.JSON else _Human())
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    logging.getLogger("gossamer").setLevel(logging.INFO)


class _Human(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        at = datetime.fromtimestamp(record.created, UTC)
        return _one_line(f"{at:%H:%M:%S} {record.levelname.lower()}: {text_of(record)}") + _trace(record)


class _Json(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        event = record.name if record.args else record.getMessage()
        fields = {"time": at, "level": record.levelname.lower(), "event": event, "text": text_of(record), **_fields(record)}
        return json.dumps(fields | ({"trace": _trace(record)} if record.exc_info else {}), default=str)


def text_of(record: logging.LogRecord) -> str:
    return " ".join((record.getMessage(), *(f"{key}={value}" for key, value in _fields(record).items())))


def _fields(record: logging.LogRecord) -> dict[str, object]:
    return {key: value for key, value in vars(record).items() if key not in _NO_FIELDS}


def _trace(record: logging.LogRecord) -> str:
    return "" if record.exc_info is None else "\n" + logging.Formatter().formatException(record.exc_info)


def _one_line(text: str) -> str:
    """What a terminal would take for a command is spelled out."""
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)[:1000]


_NO_FIELDS: Final = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
