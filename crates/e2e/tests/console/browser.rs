//! A real browser, driven through `driver.js`. All tests of this crate share one and take turns:
//! that loads a small machine less than several at once.
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

use e2e::{CHROMIUM, NODE};
use serde_json::{Value, json};

const DRIVER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/console/driver.js");
/// Timeout for conditions on the page: long, because the machine may be busy.
const PATIENCE_MS: u64 = 60_000;

static BROWSER: Mutex<Option<Browser>> = Mutex::new(None);

pub(crate) struct Browser {
    /// Ends by itself when its input is closed, at the latest with this process.
    _driver: Child,
    orders: ChildStdin,
    answers: BufReader<ChildStdout>,
}

/// The page under test. While a test holds it, no other test has the browser.
pub(crate) struct Page(MutexGuard<'static, Option<Browser>>);

/// The size of the window, in pixels.
#[derive(Clone, Copy)]
pub(crate) struct Window {
    pub(crate) width: u32,
    pub(crate) height: u32,
}

pub(crate) const DESK: Window = Window { width: 1280, height: 900 };
pub(crate) const PHONE: Window = Window { width: 360, height: 740 };

fn launch() -> Browser {
    let mut command = NODE.command();
    command.arg(DRIVER).arg(CHROMIUM.command().get_program());
    let pipes = command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut driver = pipes.spawn().expect("node can be started");
    let orders = driver.stdin.take().expect("its input is piped");
    let answers = BufReader::new(driver.stdout.take().expect("its output is piped"));
    Browser { _driver: driver, orders, answers }
}

impl Page {
    /// Opens the console of a node, in a session of its own.
    pub(crate) fn open(http_port: u16, window: Window, scheme: &str) -> Page {
        let mut browser = BROWSER.lock().unwrap_or_else(PoisonError::into_inner);
        browser.get_or_insert_with(launch);
        let mut page = Page(browser);
        let url = format!("http://127.0.0.1:{http_port}/");
        let (width, height) = (window.width, window.height);
        page.order(&json!({ "do": "open", "url": url, "width": width, "height": height, "scheme": scheme }));
        page
    }

    /// Waits until a script returns a true value, and returns that value.
    pub(crate) fn wait(&mut self, script: &str) -> Value {
        self.order(&json!({ "do": "wait", "script": script, "patience": PATIENCE_MS }))
    }

    pub(crate) fn run(&mut self, script: &str) -> Value {
        self.order(&json!({ "do": "run", "script": script }))
    }

    pub(crate) fn press(&mut self, key: &str) {
        self.order(&json!({ "do": "press", "key": key }));
    }

    pub(crate) fn write(&mut self, text: &str) {
        self.order(&json!({ "do": "type", "text": text }));
    }

    pub(crate) fn click(&mut self, selector: &str) {
        self.order(&json!({ "do": "click", "selector": selector }));
    }

    pub(crate) fn hover(&mut self, selector: &str, (x, y): (u32, u32)) {
        self.order(&json!({ "do": "hover", "selector": selector, "x": x, "y": y }));
    }

    pub(crate) fn resize(&mut self, Window { width, height }: Window) {
        self.order(&json!({ "do": "resize", "width": width, "height": height }));
    }

    /// Saves a screenshot of the page down to an element: in target/, and with UPDATE_DOCS in docs/images.
    pub(crate) fn shot(&mut self, name: &str, below: &str) {
        let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
        let update = std::env::var_os("UPDATE_DOCS").is_some();
        let dir = PathBuf::from(root).join(if update { "docs/images" } else { "target/console" });
        let path = dir.join(name);
        self.order(&json!({ "do": "shot", "path": path, "below": below }));
    }

    /// Asserts that the page reports no errors.
    pub(crate) fn assert_no_errors(&mut self) {
        let errors = self.order(&json!({ "do": "errors" }));
        assert_eq!(errors, json!([]), "the browser complains");
    }

    /// Asserts that nothing extends beyond the right edge of the window.
    pub(crate) fn assert_no_overhang(&mut self, when: &str) {
        let script = "[document.documentElement.scrollWidth - innerWidth, [...document.querySelectorAll('main *')]
            .filter((it) => it.getBoundingClientRect().right > innerWidth + 1 && !it.closest('.scroll, .letters'))
            .map((it) => it.outerHTML.slice(0, 90)).slice(0, 3)]";
        assert_eq!(self.run(script), json!([0, []]), "{when}");
    }

    fn order(&mut self, order: &Value) -> Value {
        let browser = self.0.as_mut().expect("it was launched");
        writeln!(browser.orders, "{order}").expect("the driver listens");
        let mut line = String::new();
        browser.answers.read_line(&mut line).expect("the driver answers");
        let mut answer: Value = serde_json::from_str(&line)
            .unwrap_or_else(|error| panic!("the driver ended over {order}: {error}"));
        assert!(answer.get("failed").is_none(), "{order}: {}", answer["failed"]);
        answer["done"].take()
    }
}
