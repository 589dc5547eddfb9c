"""Answers that are text but no HTML: JSON, plain text, XML. Decoded as a browser would, told as they are."""

from __future__ import annotations

import codecs
import re
from email.message import Message

from api.scrape.escape import fence

_BOMS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
_LANGUAGES = {"json": "json", "xml": "xml"}
# Labels of the Encoding Standard that Python reads as something narrower than browsers do.
_AS_BROWSERS = {"iso-8859-1": "windows-1252", "latin-1": "windows-1252", "us-ascii": "windows-1252"}
_AS_BROWSERS |= {"ascii": "windows-1252", "latin1": "windows-1252", "shift_jis": "cp932", "gb2312": "gb18030"}


def decode(body: bytes, content_type: str) -> str:
    """The text of a body: by byte order mark, else the header's charset, else UTF-8, else windows-1252."""
    for mark, name in _BOMS:
        if body.startswith(mark):
            return body[len(mark) :].decode(name, "replace")
    label = _charset(content_type)
    if label:
        try:
            return body.decode(_AS_BROWSERS.get(label, label), "replace")
        except LookupError:
            pass  # a label that nobody knows says nothing
    try:
        return body.decode("utf-8")
    except UnicodeDecodeError:
        return body.decode("windows-1252", "replace")


def as_markdown(text: str, kind: str, media_type: str) -> str:
    """The text unchanged within a code fence, so that nothing in it is read as a mark; Markdown as it is."""
    if not text or media_type in ("text/markdown", "text/x-markdown"):
        return text
    marks = fence(text, 3)
    end = "" if text.endswith("\n") else "\n"
    return f"{marks}{_LANGUAGES.get(kind, '')}\n{text}{end}{marks}\n"


def _charset(content_type: str) -> str:
    message = Message()
    message["content-type"] = content_type
    found = message.get_param("charset")
    return re.sub(r"[\"'\s]", "", found).lower() if isinstance(found, str) else ""
