"""The article: a text worth reading, among the noise that surrounds texts."""

from __future__ import annotations

import json
from typing import Final

TITLE: Final = "How a garden spider weaves its web"
DESCRIPTION: Final = (
    "In about an hour, and mostly in the dark, a garden spider builds a web of some twenty metres of silk. "
    "This is the order in which she works."
)


def head(base: str) -> str:
    """Metadata with absolute addresses; ``base`` is the site's own, without a slash at its end."""
    data = {
        "@context": "https://schema.org",
        "@type": "Article",
        "headline": TITLE,
        "author": {"@type": "Person", "name": "Ida Marlow"},
        "datePublished": "2026-03-14",
        "image": f"{base}/image.png?picture=web",
    }
    return f"""<meta name="description" content="{DESCRIPTION}">
<meta name="author" content="Ida Marlow">
<link rel="canonical" href="{base}/article">
<meta property="og:type" content="article">
<meta property="og:site_name" content="Thread &amp; Loom">
<meta property="og:title" content="{TITLE}">
<meta property="og:description" content="{DESCRIPTION}">
<meta property="og:url" content="{base}/article">
<meta property="og:image" content="{base}/image.png?picture=web">
<meta property="article:published_time" content="2026-03-14T08:00:00+00:00">
<script type="application/ld+json">{json.dumps(data)}</script>
"""


BODY: Final = """<div class="wrap columns">
<main><article>
<p class="kicker">Field notes</p>
<h1>How a garden spider weaves its web</h1>
<p class="lead">In about an hour, and mostly in the dark, a garden spider builds a web of some twenty metres
of silk. She can hardly see it. Every thread is measured with her legs.</p>
<p class="byline">By <a href="/authors/ida-marlow" rel="author">Ida Marlow</a>,
<time datetime="2026-03-14">14 March 2026</time> · 4 minutes</p>

<figure>
<img src="/image.png?picture=web" width="760" height="400" alt="An orb web hung with dew">
<figcaption>An orb web on a cold morning. The dew shows where the sticky spiral runs.</figcaption>
</figure>

<h2 id="bridge">The first thread crosses on the wind</h2>
<p>The beginning is left to chance. The spider lets out a fine thread and waits until a draught carries it
to a twig. When it holds, she walks over, <em>eats</em> the thread as she goes and spins a stronger one behind
her. From the middle of this bridge she drops down on a second thread and ties it below: the web now has the
shape of a Y, and the fork will be its hub.</p>

<h2 id="radii">Spokes, then a scaffold</h2>
<p>Next come the frame and the radii, between twenty-five and thirty of them in a web of
<i lang="la">Araneus diadematus</i>. She lays each one where the gap is widest, so that the hub is always
pulled evenly. Then she walks outwards in a wide spiral that does not stick. It is only
<strong>a scaffold</strong>: it holds the spokes apart while she works, and gives her something to stand on.</p>
<p>Her order of work is short enough to write down:</p>
<ol>
<li>Bridge and Y: three threads, one centre.</li>
<li>Frame and radii, from the widest gap to the next.</li>
<li>The dry spiral, from the inside out.</li>
<li>The sticky spiral, from the outside in.</li>
<li>The hub: bitten open, laced again, sat upon.</li>
</ol>

<h2 id="spiral">The thread that catches</h2>
<p>Only now does she change to the silk that catches flies. She goes round from the rim to the hub, measures
the distance to the last turn with a leg, glues, pulls, lets go. The scaffold is taken away as she passes.
How long is such a thread? For an even spiral the answer is one line of arithmetic, since the turns fill a
ring: its area, divided by the distance between two turns.</p>
<pre><code class="language-python">from math import pi

def spiral_length(inner: float, outer: float, gap: float) -&gt; float:
    \"""Length of an even spiral between two radii.\"""
    return pi * (outer**2 - inner**2) / gap

print(round(spiral_length(2, 12, 0.4)), "cm")   # 1100 cm
</code></pre>
<p>Eleven metres for a web no wider than a dinner plate, and she has not yet counted the spokes.</p>

<h2 id="silks">Seven silks</h2>
<p>A spider does not have one silk but several, each from glands of its own.</p>
<table>
<caption>What an orb weaver spins, and from which gland</caption>
<thead><tr><th>Gland</th><th>Used for</th><th>Sticky</th></tr></thead>
<tbody>
<tr><td>Major ampullate</td><td>frame, spokes, the line she falls on</td><td>no</td></tr>
<tr><td>Minor ampullate</td><td>the scaffold</td><td>no</td></tr>
<tr><td>Flagelliform</td><td>core of the catching spiral</td><td>no</td></tr>
<tr><td>Aggregate</td><td>glue on that core</td><td>yes</td></tr>
<tr><td>Piriform</td><td>the dots that tie threads down</td><td>yes</td></tr>
<tr><td>Aciniform</td><td>wrapping prey</td><td>no</td></tr>
<tr><td>Tubuliform</td><td>the egg sac</td><td>no</td></tr>
</tbody>
</table>
<p>The two that matter most could hardly differ more. The frame is stiff and stretches by about a quarter
before it breaks. The spiral stretches to <em>more than three times</em> its length: it does not stop a bee,
it lets the bee tire itself out.</p>

<blockquote><p>A web is not a wall. It is a long brake.</p></blockquote>

<h2 id="morning">Eaten for breakfast</h2>
<p>By morning dust has dulled the glue. Many nights the spider takes the web down, rolls it up and eats
it. Most of the protein comes back as new silk, some of it within the hour. Weavers who
<a href="/shop?page=1">buy their yarn</a> may feel envy here. Those who want to try the pattern on wood can <a href="app">look for a free loom</a>, and those who want the long story should read about
<a href="https://en.wikipedia.org/wiki/Orb-weaver_spider">orb weavers</a>.</p>
</article></main>

<aside aria-label="More">
<section class="box"><h2>In this text</h2><ul>
<li><a href="#bridge">The bridge</a></li><li><a href="#radii">Spokes</a></li>
<li><a href="#spiral">The spiral</a></li>
<li><a href="#silks">Seven silks</a></li><li><a href="#morning">Breakfast</a></li></ul></section>
<section class="box"><h2>Also read by nobody</h2><ul>
<li><a href="/frames">What visitors wrote</a></li><li><a href="/shop">New wool is in</a></li></ul></section>
<section class="box accent"><h2>Our letter</h2><p>Four times a year, on paper.</p>
<form action="/echo" method="post"><label>Address <input name="address" autocomplete="off"></label>
<button>Send me one</button></form></section>
</aside>
</div>
"""
