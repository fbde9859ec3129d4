"""What the operator gave that a crawl can't begin with: seeds that are no URLs, files that can't be read or written.

Answered in one line each, before anything is made. What only an engine can tell (modules, addresses) it is asked itself.
Knows: texts and files. Must not know: how a crawl is kept or run.
"""

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from gossamer.errors import SettingsError, UrlError
from gossamer.settings import Settings
from gossamer.settings import Start as StartSettings
from gossamer.urls import requested


def checked(settings: Settings) -> Settings:
    """The same settings, with every seed in `start.seeds`, in the form that is requested. Raises `SettingsError`."""
    if settings.output.report is not None:
        _check_writable(settings.output.report)
    seeds = tuple(dict.fromkeys(_seeds(settings.start, settings.links.max_url_length)))
    if not seeds:
        raise SettingsError(f"there is no seed in {settings.start.seeds_file}")
    return replace(settings, start=replace(settings.start, seeds=seeds, seeds_file=None))


def _seeds(start: StartSettings, length_max: int) -> Iterator[str]:
    for text in start.seeds:
        yield _requested(text, "--seed", length_max)
    if start.seeds_file is not None:
        for number, line in enumerate(_lines(start.seeds_file), 1):
            if (text := line.strip()) and not text.startswith("#"):
                yield _requested(text, f"{start.seeds_file}, line {number}:", length_max)


def _requested(text: str, where: str, length_max: int) -> str:
    try:
        return requested(text, length_max=length_max)
    except UrlError as refusal:
        shown = repr(text if len(text) <= 60 else text[:60] + "…")
        raise SettingsError(f"{where} {shown} can't be a seed: {refusal}{hint(text)}") from None


def hint(text: str) -> str:
    """`example.com` is what people type, and browsers take."""
    if "://" in text or not {".", ":"} & set(text):
        return ""
    try:
        return f"; did you mean {requested(f'https://{text}')}?"
    except UrlError:
        return ""


def _lines(file: Path) -> list[str]:
    try:
        return file.read_text(encoding="utf-8-sig").splitlines()
    except OSError as error:
        raise SettingsError(f"--seeds {file} can't be read: {error.strerror}") from error
    except UnicodeDecodeError:
        raise SettingsError(f"--seeds {file} is not a text") from None


def _check_writable(report: Path) -> None:
    """Now, and not after hours of crawling."""
    folder = report.absolute().parent
    if report.is_dir() or not folder.is_dir() or not os.access(folder, os.W_OK):
        raise SettingsError(f"--report {report} can't be written: it takes a file in a folder that exists and can be written to")
