// Drives a real browser for the tests beside it: one order a line in, one answer a line out, as JSON.
// `browser.rs` writes the orders. It ends, and the browser with it, when its input does.

const readline = require("node:readline");
const { setTimeout: sleep } = require("node:timers/promises");
const { chromium } = require("playwright-core");

const errors = [];
let page = null;

const orders = {
  async open({ url, width, height, scheme }) {
    await page?.context().close();
    const context = await browser.newContext({ viewport: { width, height }, colorScheme: scheme, deviceScaleFactor: 1 });
    page = await context.newPage();
    errors.length = 0;
    page.on("console", (message) => { if (["error", "warning"].includes(message.type())) errors.push(message.text()); });
    page.on("pageerror", (error) => errors.push(String(error)));
    await page.goto(url);
  },
  // Waits until the script is true, and gives what it is. Asked from outside: the page's own policy
  // allows no script made of text.
  async wait({ script, patience }) {
    for (const until = Date.now() + patience; Date.now() < until; await sleep(50)) {
      const found = await page.evaluate(`((it) => it instanceof Node ? true : it)(${script})`);
      if (found) return found;
    }
    throw new Error(`not within ${patience} ms; the page says: ${await page.evaluate("document.body.innerText.slice(0, 1500)")}`);
  },
  run: ({ script }) => page.evaluate(script),
  press: ({ key }) => page.keyboard.press(key),
  type: ({ text }) => page.keyboard.type(text),
  click: ({ selector }) => page.click(selector, { timeout: 20_000 }),
  hover: ({ selector, x, y }) => page.hover(selector, { position: { x, y }, timeout: 20_000 }),
  resize: ({ width, height }) => page.setViewportSize({ width, height }),
  // Of the part above `below`, if it is given.
  async shot({ path, below }) {
    const box = below ? await (await page.$(below)).boundingBox() : null;
    const { width, height } = page.viewportSize();
    const clip = { x: 0, y: 0, width, height: box ? Math.ceil(box.y) : height };
    await page.screenshot({ path, clip, fullPage: true });
  },
  errors: () => errors.slice(),
};

let browser;

async function main() {
  browser = await chromium.launch({ executablePath: process.argv[2], args: ["--no-sandbox", "--disable-gpu"] });
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const order = JSON.parse(line);
    let answer;
    try {
      answer = { done: (await orders[order.do](order)) ?? null };
    } catch (error) {
      answer = { failed: String(error) };
    }
    process.stdout.write(`${JSON.stringify(answer)}\n`);
  }
  await browser.close();
}

main();
