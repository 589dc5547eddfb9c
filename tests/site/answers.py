"""Answers that are right but not what a scraper expects: other types, charsets and statuses."""

from __future__ import annotations

import base64
import http
import json
from typing import Final

from tests.site import front
from tests.site.layout import plain
from tests.site.routes import Routes
from tests.site.wire import Exchange, Reply

ROUTES = Routes(
    "Odd but right", "Answers that are in order, yet not the usual page in UTF-8 with status 200."
)

USER, PASSWORD = "user", "secret"
ATTACHMENT: Final = b"A" * 1024 * 1024


@ROUTES.at("/status/*", "A page with this status, from 200 to 599.", example="/status/503")
def status(exchange: Exchange) -> Reply:
    word = exchange.request.path.removeprefix("/status/")
    if not (word.isdecimal() and 200 <= int(word) <= 599):
        return front.not_found(exchange)
    try:
        phrase = http.HTTPStatus(int(word)).phrase
    except ValueError:
        phrase = "Unnamed"
    return Reply(plain(word, f"<h1>{word}</h1><p>{phrase}</p>"), int(word))


ROUTES.give("/n204", "204: there is no content.", lambda _: Reply(status=204, content_type=None))
ROUTES.give("/empty", "200 with a body of no bytes.", lambda _: Reply(b""))


@ROUTES.at("/basic", "Asks for a name and password (user, secret).")
def basic(exchange: Exchange) -> str | Reply:
    right = "Basic " + base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
    if exchange.request.header("authorization") == right:
        return plain("inside", "<h1>inside</h1><p>You are in.</p>")
    return Reply("<p>login</p>", 401, headers={"WWW-Authenticate": 'Basic realm="x"'})


# Charsets: the bytes are written out, so that no editor can turn them into something else. ----------

SHIFT_JIS = b"<title>t</title><p>" + bytes.fromhex("93fa967b8cea836583588367")
WINDOWS_1251 = (
    b"<meta charset=windows-1251><p>"
    + bytes.fromhex("cff0e8e2e5f22c20ece8f0")
    + b'<a href="/x?q='
    + bytes.fromhex("cff0")
    + b'">l</a>'
)
UNLABELLED = b"<p>" + bytes.fromhex("636166e9209620936f6b94")

ROUTES.give(
    "/charset/shift_jis",
    "Japanese in Shift_JIS; only the header says so.",
    lambda _: Reply(SHIFT_JIS, content_type="text/html; charset=Shift_JIS"),
)
ROUTES.give(
    "/charset/windows-1251",
    "Russian in windows-1251; only the page says so.",
    lambda _: Reply(WINDOWS_1251, content_type="text/html"),
)
ROUTES.give(
    "/charset/windows-1252",
    "Curly quotes in windows-1252; nobody says so.",
    lambda _: Reply(UNLABELLED, content_type="text/html"),
)

# Other types ----------------------------------------------------------------------------------------


def one_page_pdf(text: str) -> bytes:
    """A PDF of one A4 page with one line of Latin text."""
    escaped = text.replace("\\", r"\\").replace("(", r"\(").replace(")", r"\)")
    content = f"BT /F1 24 Tf 72 720 Td ({escaped}) Tj ET".encode("latin-1")
    objects = (
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        (
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents 4 0 R"
            b" /Resources << /Font << /F1 5 0 R >> >> >>"
        ),
        b"<< /Length %d >>\nstream\n%s\nendstream" % (len(content), content),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    )
    pdf = b"%PDF-1.4\n%\xe2\xe3\xcf\xd3\n"  # the second line marks the file as binary
    places: list[int] = []
    for number, item in enumerate(objects, 1):
        places.append(len(pdf))
        pdf += b"%d 0 obj\n%s\nendobj\n" % (number, item)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    size = len(objects) + 1
    return pdf + (
        b"xref\n0 %d\n0000000000 65535 f \n%strailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n"
        % (size, table, size, len(pdf))
    )


PDF: Final = one_page_pdf("One page from the sample site")
TEXT: Final = "# T\n<b>no</b> a  b\n* x\n"
JSON: Final = '{"a":1,"b":"<b>é&amp;</b>"}'
XML: Final = (
    '<?xml version="1.0" encoding="utf-8"?>\n<loom><warp ends="480"/><weft picks="24">wool</weft></loom>\n'
)
PROBLEM: Final = json.dumps(
    {"type": "about:blank", "title": "Bad Request", "status": 400, "detail": "No such loom."}
)
SVG: Final = (
    '<svg xmlns="http://www.w3.org/2000/svg" width="200" height="120" viewBox="0 0 200 120">'
    '<rect width="200" height="120" fill="#f4ead9"/><circle cx="100" cy="60" r="40" fill="#a4452c"/>'
    '<text x="100" y="66" fill="#fff" font-family="sans-serif" text-anchor="middle">thread</text></svg>\n'
)

ROUTES.give(
    "/download",
    "An attachment of 1 MiB, a.bin.",
    lambda _: Reply(
        ATTACHMENT,
        content_type="application/octet-stream",
        headers={"Content-Disposition": 'attachment; filename="a.bin"'},
    ),
)
ROUTES.give("/pdf", "A PDF of one page.", lambda _: Reply(PDF, content_type="application/pdf"))
ROUTES.give(
    "/text",
    "Plain text that looks like HTML.",
    lambda _: Reply(TEXT, content_type="text/plain; charset=utf-8"),
)
ROUTES.give("/json", "JSON with markup inside.", lambda _: Reply(JSON, content_type="application/json"))
ROUTES.give(
    "/problem",
    "A problem document with status 400.",
    lambda _: Reply(PROBLEM, 400, "application/problem+json"),
)
ROUTES.give("/xml", "XML that is no page.", lambda _: Reply(XML, content_type="application/xml"))
ROUTES.give("/image.svg", "A drawing in SVG.", lambda _: Reply(SVG, content_type="image/svg+xml"))
