"""Shardings to look at: which device holds which part of a vector or a matrix, as text and as SVG."""
_COLORS = ("#4e79a7", "#f28e2b", "#59a14f", "#e15759", "#76b7b2", "#edc948", "#b07aa1", "#ff9da7", "#9c755f",
           "#bab0ac")


def _table(shape, sharding):
    """Rows of lists of labels, `CPU 0,1`, one for each part."""
    shape = tuple(shape)
    if len(shape) not in (1, 2):
        raise ValueError(f"visualize_sharding draws arrays of 1 and 2 dimensions; shape {shape} has "
                         f"{len(shape)}")
    sharding.shard_shape(shape)
    devices = sharding._devices
    tiles = sharding._tiles(len(shape))
    platform = devices[0].platform.upper()
    label = lambda numbers: f"{platform} {','.join(str(devices[i].id) for i in sorted(numbers))}"
    return [[label(numbers) for numbers in row] for row in (tiles[None] if len(shape) == 1 else tiles)]


def as_text(shape, sharding, *, scale=1.0, min_width=9, max_width=80, color=False):
    """A box for each part.  Cells are at least `min_width` wide with their borders, the whole at most
    `max_width`."""
    table = _table(shape, sharding)
    rows, columns = len(table), len(table[0])
    lines, width = 1, min_width - 2
    if len(shape) == 2:      # a character is some 2.5 times as high as it is wide
        lines = max(1, int(10 * scale) // rows - 1)
        width = max(width, int(25 * scale * shape[1] / max(shape[0], 1)) // columns - 2)
    width = max(width, *(len(label) for row in table for label in row))
    width = max(1, min(width, (max_width - 1) // columns - 1))

    def cell(row, column, line):
        label = table[row][column] if line == lines // 2 else ""
        if len(label) > width:
            label = label.partition(" ")[2]      # the ids alone
        label = label if len(label) <= width else label[: width - 1] + "…"
        # 154 to 225 are light colours of terminals; a step of 37 keeps neighbours apart
        paint = f"\x1b[30;48;5;{154 + 37 * (row * columns + column) % 72}m" if color else ""
        return paint + label.center(width) + ("\x1b[0m" if color else "")

    rule = lambda left, middle, right: left + middle.join(["─" * width] * columns) + right
    body = ["\n".join("│" + "│".join(cell(row, c, line) for c in range(columns)) + "│"
                      for line in range(lines)) for row in range(rows)]
    return "\n".join([rule("┌", "┬", "┐"), f"\n{rule('├', '┼', '┤')}\n".join(body), rule("└", "┴", "┘")])


def as_svg(shape, sharding, *, scale=1.0):
    """The same as an SVG document.  Parts are drawn in proportion, but no smaller than their labels."""
    table = _table(shape, sharding)
    rows, columns = len(table), len(table[0])
    aspect = shape[1] / max(shape[0], 1) if len(shape) == 2 else 8
    longest = max(len(label) for row in table for label in row)
    width = round(max(320 * scale * min(aspect, 4) / columns, 8 * longest + 16))
    height = round(max(320 * scale / max(aspect, 1) / rows, 32) if len(shape) == 2 else 48 * scale)
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width * columns + 2}" '
             f'height="{height * rows + 2}" font-family="monospace" font-size="13">']
    for i, row in enumerate(table):
        for j, label in enumerate(row):
            x, y = 1 + j * width, 1 + i * height
            parts.append(f'<rect x="{x}" y="{y}" width="{width}" height="{height}" stroke="white" '
                         f'fill="{_COLORS[(i * columns + j) % len(_COLORS)]}"/>')
            parts.append(f'<text x="{x + width / 2:g}" y="{y + height / 2:g}" text-anchor="middle" '
                         f'dominant-baseline="central">{label}</text>')
    return "\n".join([*parts, "</svg>\n"])
