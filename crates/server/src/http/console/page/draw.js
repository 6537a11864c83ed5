// The position of a bucket, hit testing under the pointer, and painting of a node's box.
//
// In squares, a bucket's position follows its slots: the first four bits choose one of 4 x 4 fields, the next
// four one of 4 x 4 inside it, and so on. So a split bucket becomes 16 small ones at its own position.

const SLOTS = 16_384;
const MASKS = [0x000f, 0x00ff, 0x0fff, 0x3fff];
const across = (level) => (level < 3 ? 4 : 2);
const digit = (slot, level) => (level < 3 ? (slot >> (10 - 4 * level)) & 15 : slot & 3);
const gapOf = (cell) => (cell > 30 ? 1.5 : cell > 8 ? 0.75 : cell > 3 ? 0.35 : 0);

export const ROLE = { none: 0, primary: 1, backup: 2, filling: 3, pending: 4, lost: 5 };

export const squares = {
  place(bucket, width) {
    let x = 0, y = 0, side = width;
    for (let level = 0; level <= MASKS.indexOf(bucket.mask); level++) {
      const n = across(level), d = digit(bucket.slot, level), cell = side / n, gap = gapOf(cell);
      x += (d % n) * cell + gap;
      y += Math.floor(d / n) * cell + gap;
      side = cell - 2 * gap;
    }
    return { x, y, w: side, h: side };
  },
  at(buckets, x, y, width) {
    let slot = 0, side = width;
    for (let level = 0; level < 4; level++) {
      const n = across(level), cell = side / n;
      const column = Math.floor(x / cell), row = Math.floor(y / cell);
      if (column < 0 || row < 0 || column >= n || row >= n) return null;
      const d = row * n + column;
      slot |= level < 3 ? d << (10 - 4 * level) : d;
      const bucket = buckets.get(slot);
      if (bucket?.mask === MASKS[level]) return bucket;
      const gap = gapOf(cell);
      side = cell - 2 * gap;
      const inside = (value, place) => Math.min(Math.max(value - place * cell - gap, 0), side - 0.001);
      x = inside(x, column);
      y = inside(y, row);
    }
    return null;
  },
};

export const bands = {
  place(bucket, width, height) {
    const w = width * bucket.slots / SLOTS;
    const gap = w > 6 ? 1 : w > 3 ? 0.4 : 0;
    return { x: width * bucket.slot / SLOTS + gap / 2, y: 0, w: w - gap, h: height };
  },
  at(buckets, x, y, width) {
    const slot = Math.floor(x / width * SLOTS);
    if (slot < 0 || slot >= SLOTS || y < 0) return null;
    for (const mask of MASKS) {
      const bucket = buckets.get(slot - slot % (SLOTS / (mask + 1)));
      if (bucket?.mask === mask) return bucket;
    }
    return null;
  },
};

/** Returns the current colours of the style sheet: light or dark. */
export function palette() {
  const probe = document.createElement("span");
  document.body.append(probe);
  const colours = {};
  for (const name of ["primary", "backup", "empty", "filling", "pending", "dead", "ink", "on-primary", "on-backup"]) {
    probe.style.color = `var(--${name})`;
    colours[name] = getComputedStyle(probe).color;
  }
  probe.remove();
  return colours;
}

const LETTERS = { [ROLE.primary]: ["P", "on-primary"], [ROLE.backup]: ["S", "on-backup"], [ROLE.pending]: ["S", "on-backup"] };

/** Paints one node's box. `cells` are positions with a role and, during a fill, its progress. */
export function paint(canvas, cells, colours, time) {
  const ratio = devicePixelRatio || 1;
  const width = Math.round(canvas.clientWidth * ratio), height = Math.round(canvas.clientHeight * ratio);
  if (canvas.width !== width || canvas.height !== height) { canvas.width = width; canvas.height = height; }
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, canvas.clientWidth, canvas.clientHeight);
  for (const cell of cells) paintCell(context, cell, colours, time);
}

function paintCell(context, { x, y, w, h, role, percent }, colours, time) {
  const box = (style) => {
    context.fillStyle = style;
    if (w > 7 && h > 7) {
      context.beginPath();
      context.roundRect(x, y, w, h, Math.min(5, w / 6));
      context.fill();
    } else {
      context.fillRect(x, y, w, h);
    }
  };
  switch (role) {
    case ROLE.primary: box(colours.primary); break;
    case ROLE.backup: box(colours.backup); break;
    case ROLE.pending:
      box(colours.backup);
      stripes(context, { x, y, w, h }, colours.pending, 0);
      break;
    case ROLE.filling: {
      box(colours.empty);
      const full = h * Math.max(8, percent) / 100;
      context.globalAlpha = 0.35;
      context.fillStyle = colours.filling;
      context.fillRect(x, y + h - full, w, full);
      context.globalAlpha = 1;
      stripes(context, { x, y, w, h }, colours.filling, time / 60);
      break;
    }
    case ROLE.lost:
      box(colours.empty);
      context.strokeStyle = colours.dead;
      context.lineWidth = w > 10 ? 2 : 1;
      context.strokeRect(x + 1, y + 1, Math.max(0, w - 2), Math.max(0, h - 2));
      break;
    default: box(colours.empty);
  }
  const letter = LETTERS[role];
  if (letter && w >= 20 && h >= 16) {
    context.fillStyle = colours[letter[1]];
    context.font = `600 ${Math.min(15, Math.round(w / 2.4))}px system-ui, sans-serif`;
    context.textAlign = "center";
    context.textBaseline = "middle";
    context.fillText(letter[0], x + w / 2, y + h / 2 + 0.5);
  }
}

function stripes(context, { x, y, w, h }, colour, offset) {
  const step = w > 12 ? 7 : 4;
  context.save();
  context.beginPath();
  context.rect(x, y, w, h);
  context.clip();
  context.strokeStyle = colour;
  context.lineWidth = step / 2.4;
  context.beginPath();
  for (let at = -h - step + (offset % step); at < w + step; at += step) {
    context.moveTo(x + at, y + h);
    context.lineTo(x + at + h, y);
  }
  context.stroke();
  context.restore();
}

/** Returns a point on the arc between two positions, `t` from 0 to 1. */
export function onArc(from, to, t) {
  const lift = Math.min(70, 14 + Math.hypot(to.x - from.x, to.y - from.y) / 5);
  const middle = { x: (from.x + to.x) / 2, y: (from.y + to.y) / 2 - lift };
  const mix = (a, b, c) => (1 - t) * (1 - t) * a + 2 * t * (1 - t) * b + t * t * c;
  return { x: mix(from.x, middle.x, to.x), y: mix(from.y, middle.y, to.y) };
}
