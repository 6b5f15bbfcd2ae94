"""Makes an input of a kind and size from $SEED: `inputs.py KIND SIZE`, on standard output, or into a FOLDER: `inputs.py tree SIZE FOLDER`."""

import os
import random
import sys

chance = random.Random(f"{os.environ.get('SEED', '0')} {sys.argv[1:]}")
letters = "abcdefghijklmnopqrstuvwxyz"
words = ["".join(chance.choices(letters, k=chance.randint(2, 9))) for _ in range(5000)]


def word() -> str:
    return words[int(len(words) * chance.random() ** 3)]


def text(count: int) -> str:
    return " ".join(word() for _ in range(count))


def body(line: str) -> str:
    return "".join(line.format(chance.randrange(1, 99), i % 7 + 1, i + 2) for i in range(6))


def source(size: int, head: str, function: str, line: str, tail: str = "") -> str:
    return head + "".join(function.replace("NAME", f"f{i}").replace("BODY", body(line)) for i in range(size)) + tail


def csv(size: int) -> str:
    rows = (f"{i},{word()},{chance.randrange(50)},{chance.random():.6f}\n" for i in range(size))
    return "id,name,group,value\n" + "".join(rows)


def rust(size: int) -> str:
    function = "pub fn NAME(a: i32, b: i32) -> i32 {\n    let mut s = 0i32;\nBODY    s\n}\n"
    return source(size, "", function, "    for i in 0..a {{ s = s.wrapping_add(a.wrapping_mul({0}) ^ (b >> {1})) + i % {2}; }}\n")


def go(size: int) -> str:
    function = "func NAME(a, b int) int {\n\ts := 0\nBODY\treturn s\n}\n"
    return source(size, "package main\nfunc main() {}\n", function, "\tfor i := 0; i < a; i++ {{ s += a*{0} ^ (b>>{1}) + i%{2} }}\n")


def java(size: int) -> str:
    function = "    static int NAME(int a, int b) {\n        int s = 0;\nBODY        return s;\n    }\n"
    return source(size, "class Big {\n", function, "        for (int i = 0; i < a; i++) s += a * {0} ^ (b >> {1}) + i % {2};\n", "}\n")


def typescript(size: int) -> str:
    function = "function NAME(a: number, b: number): number {\n    let s: number = 0;\nBODY    return s;\n}\n"
    return source(size, "", function, "    for (let i = 0; i < a; i++) s += a * {0} ^ (b >> {1}) + i % {2};\n")


def commits(size: int) -> str:
    lines = [text(8) for _ in range(400)]
    made = []
    for number in range(size):
        for _ in range(5):
            lines[chance.randrange(len(lines))] = text(8)
        content = "\n".join(lines) + "\n"
        made.append(f"commit refs/heads/main\ncommitter A <a@example.org> {1700000000 + number} +0000\ndata 1\nx\n")
        made.append(f"M 100644 inline file{number % 20}\ndata {len(content)}\n{content}\n")
    return "".join(made)


def markdown(size: int) -> str:
    part = lambda i: f"# {text(4)}\n\n{text(60)} *{word()}* `{word()}` [{word()}](#{word()}).\n\n- {text(8)}\n- **{text(5)}**\n\n"
    return "".join(part(i) for i in range(size))


def graph(size: int) -> str:
    edges = (f"n{chance.randrange(size)} -> n{chance.randrange(size)};\n" for _ in range(size * 3 // 2))
    return "digraph {\n" + "".join(edges) + "}\n"


def svg(size: int) -> str:
    shape = lambda: (
        f'<ellipse cx="{chance.randrange(1200)}" cy="{chance.randrange(900)}" rx="{chance.randrange(5, 90)}" ry="{chance.randrange(5, 90)}"'
        f' fill="#{chance.getrandbits(24):06x}" fill-opacity="0.{chance.randint(2, 9)}"/>\n'
    )
    return '<svg xmlns="http://www.w3.org/2000/svg" width="1200" height="900">\n' + "".join(shape() for _ in range(size)) + "</svg>\n"


def page(size: int) -> str:
    rows = "".join(f"<tr><td>{i}<td>{text(5)}<td class=v>{chance.randrange(999)}\n" for i in range(size))
    script = "let s = 0; for (const v of document.querySelectorAll('.v')) s += Number(v.textContent); document.title = s;"
    return f"<!doctype html><title></title><table>\n{rows}</table><script>{script}</script>\n"


def image(width: int) -> bytes:
    """A picture with slopes, edges and some noise: as wide as that, and three quarters as high."""
    height, noise = width * 3 // 4, chance.randbytes(1 << 16)
    rows = []
    for y in range(height):
        slope = bytes((x * 255 // width ^ (y >> 5 << 3 & 255)) & 255 for x in range(width)) if y % 16 == 0 else slope
        row = bytearray(3 * width)
        row[0::3], row[1::3], row[2::3] = slope, slope[::-1], bytes([y * 255 // height]) * width
        at = y * 977 % (len(noise) - 64)
        start = y * 13 % (width - 20) * 3
        row[start : start + 60] = noise[at : at + 60]
        rows.append(bytes(row))
    return f"P6\n{width} {height}\n255\n".encode() + b"".join(rows)


def tree(size: int, folder: str) -> None:
    for i in range(size):
        path = f"{folder}/{i % 40:02}"
        os.makedirs(path, exist_ok=True)
        with open(f"{path}/{i}.txt", "w") as file:
            file.write("\n".join(text(9) for _ in range(chance.randint(20, 250))))


def tests(size: int, folder: str) -> None:
    os.makedirs(folder, exist_ok=True)
    for k in range(10):
        with open(f"{folder}/test_{k}.py", "w") as file:
            file.write("import pytest\n\n\n@pytest.fixture\ndef rows():\n    return [str(i) * 5 for i in range(500)]\n")
            for i in range(size // 10):
                file.write(f"\n\ndef test_{i}(rows):\n    assert sorted(rows)[{i}] in rows and len(rows) == 500\n")


KINDS = {
    "csv": csv, "rust": rust, "go": go, "java": java, "typescript": typescript, "commits": commits, "markdown": markdown,
    "graph": graph, "svg": svg, "page": page, "image": image, "words": lambda size: "\n".join(text(5) for _ in range(size)) + "\n",
    "bytes": lambda size: chance.randbytes(size << 20),
}  # fmt: skip

if sys.argv[1] in ("tree", "tests"):
    (tree if sys.argv[1] == "tree" else tests)(int(sys.argv[2]), sys.argv[3])
else:
    made = KINDS[sys.argv[1]](int(sys.argv[2]))
    sys.stdout.buffer.write(made if isinstance(made, bytes) else made.encode())
