"""Small tables for notebooks. Everything shown is escaped."""

from collections.abc import Sequence
from html import escape


def heading(text: str) -> str:
    """A line in bold."""
    return f"<p><b>{escape(text)}</b></p>"


def paragraph(text: str) -> str:
    """A line."""
    return f"<p>{escape(text)}</p>"


def table(headings: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Rows; without headings the first column is one."""
    head = "".join(f"<th>{escape(text)}</th>" for text in headings)
    body = "".join(f"<tr>{''.join(_cell(i, cell, not headings) for i, cell in enumerate(row))}</tr>" for row in rows)
    return f"<table>{f'<thead><tr>{head}</tr></thead>' if head else ''}<tbody>{body}</tbody></table>"


def _cell(column: int, cell: object, titled: bool) -> str:
    tag = "th" if titled and column == 0 else "td"
    align = "left" if isinstance(cell, str) else "right"
    return f'<{tag} style="text-align:{align}">{escape(_shown(cell))}</{tag}>'


def _shown(cell: object) -> str:
    if cell is None:
        return "-"
    return f"{cell:,}" if isinstance(cell, int) else f"{cell:.4g}" if isinstance(cell, float) else str(cell)


def size(count: int) -> str:
    """Bytes as the command line writes them."""
    for unit, scale in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if count >= scale and count % scale == 0:
            return f"{count // scale}{unit}"
    return str(count)


def microseconds(picoseconds: int | None) -> float | None:
    """Picoseconds as microseconds."""
    return None if picoseconds is None else picoseconds / 1e6
