"""Tables of HTML: text is escaped, shares have bars."""

from vdla.support.tables import html_table


def test_cells():
    text = html_table("<b>", ["name", "n", "share"], [["<i>&", 1234, 0.5]], "a < b")
    assert "<b>&lt;b&gt;</b>" in text
    assert ">&lt;i&gt;&amp;</td>" in text
    assert ">1,234</td>" in text
    assert "width:3.00em" in text
    assert "50.0 %" in text
    assert text.endswith("<p>a &lt; b</p></div>")


def test_no_note():
    assert html_table("t", ["a"], []).endswith("</table></div>")
