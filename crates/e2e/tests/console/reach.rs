//! Accessibility of the page: at phone width, by keyboard, light and dark, with thousands of buckets.
use e2e::Server;
use serde_json::{Value, json};

use crate::browser::{DESK, PHONE, Page};

#[test]
fn at_phone_width_nothing_hangs_over() {
    let node =
        Server::node_with(&["--name", "a-node-with-a-rather-long-name-in-the-rack-of-room-seven"]);
    let mut page = Page::open(node.http_port(), PHONE, "dark");
    page.wait(
        "document.querySelector('.chip canvas') && document.querySelector('#settings-list dd')",
    );
    page.wait("document.querySelector('#chart-latency text') && document.querySelector('#late i')");
    page.assert_no_overhang("squares");
    for _ in 0..2 {
        page.click("#larger");
    }
    page.assert_no_overhang("larger squares");
    page.click("#view-bands");
    page.assert_no_overhang("bands");
    page.assert_no_errors();
}

#[test]
fn the_keyboard_reaches_everything() {
    let node = Server::node_with(&["--buckets", "16"]);
    let mut page = Page::open(node.http_port(), DESK, "light");
    page.wait(
        "document.querySelector('.chip canvas') && document.querySelector('#connect-body a')",
    );
    let wanted = page.run(
        "[...document.querySelectorAll('a[href], button, input, [tabindex=\"0\"]')]
         .filter((it) => !it.disabled && it.checkVisibility()).map((it, i) => (it.dataset.stop = i)).length",
    );
    let wanted = wanted.as_u64().expect("a count");
    assert!(wanted > 20, "{wanted}");
    page.run("document.activeElement.blur(), window.reached = new Set()");
    for _ in 0..wanted + 3 {
        page.press("Tab");
        page.run("window.reached.add(document.activeElement.dataset.stop)");
    }
    let missed = page.run(
        "[...document.querySelectorAll('[data-stop]')].filter((it) => !window.reached.has(it.dataset.stop)).map((it) => it.outerHTML.slice(0, 90))",
    );
    assert_eq!(missed, json!([]));

    let tip = "document.getElementById('tip').textContent";
    page.click("#view-bands");
    page.click("#view-squares");
    // Tab stops: bands, smaller, larger, the picture.
    for _ in 0..4 {
        page.press("Tab");
    }
    page.wait(&format!("{tip}.startsWith('000F/0000')"));
    page.press("ArrowRight");
    page.wait(&format!("{tip}.startsWith('000F/0008')"));
    page.press("ArrowDown");
    page.wait(&format!("{tip}.startsWith('000F/000A')"));
    assert!(page.run(tip).as_str().is_some_and(|tip| tip.contains("5120 to 6143")), "its slots");
    page.wait("document.getElementById('told').textContent.includes('000F/000A')");
    page.assert_no_errors();
}

#[test]
fn light_and_dark_follow_the_system_and_the_switch() {
    let node = Server::node_with(&["--buckets", "16"]);
    let mut page = Page::open(node.http_port(), DESK, "dark");
    let ground = "getComputedStyle(document.body).backgroundColor";
    let is_dark =
        |colour: &Value| colour.as_str().is_some_and(|it| it.starts_with("rgb(13, 19, 18"));
    let dark = page.run(ground);
    assert!(is_dark(&dark), "{dark}");
    page.click("#theme");
    let light = page.run(ground);
    assert!(!is_dark(&light), "{light}");
    page.click("#theme");
    assert_eq!(page.run(ground), dark);
    page.click("#theme");
    page.resize(PHONE);
    page.assert_no_errors();
}

#[test]
fn four_thousand_buckets_are_drawn_and_found() {
    let node = Server::node_with(&["--buckets", "4096"]);
    let mut page = Page::open(node.http_port(), DESK, "dark");
    page.wait("document.getElementById('picture-note').textContent.startsWith('4,096 buckets')");
    let bytes = page.run("fetch('/api/map').then((it) => it.text()).then((it) => it.length)");
    assert!(bytes.as_u64().is_some_and(|bytes| bytes < 64 * 1024), "{bytes} bytes");
    let width = "document.querySelector('.chip canvas').clientWidth";
    let before = page.run(width).as_u64().expect("a width");
    page.click("#larger");
    page.wait(&format!("{width} > {before} + 100"));
    page.hover(".chip canvas", (3, 3));
    page.wait("document.getElementById('tip').textContent.startsWith('0FFF/0000')");
    page.shot("buckets-4096.png", "#members");
    page.assert_no_errors();
}
