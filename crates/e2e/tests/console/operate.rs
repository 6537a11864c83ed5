//! Actions on the page: none without the token; with it, those of the command line.
use std::io::Write;
use std::path::PathBuf;

use e2e::Server;

use crate::browser::{DESK, Page};

const TOKEN: &str = "a-token-of-this-test";

struct TokenFile(PathBuf);

impl TokenFile {
    fn new() -> TokenFile {
        let path = std::env::temp_dir().join(format!("opencluster-token-{}", std::process::id()));
        let mut file =
            std::fs::File::create(&path).expect("the temporary directory can be written");
        writeln!(file, "{TOKEN}").expect("a line fits");
        TokenFile(path)
    }
}

impl Drop for TokenFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn unlock(page: &mut Page, token: &str) {
    page.click("#orders button");
    page.write(token);
    page.press("Enter");
}

#[test]
fn without_a_token_file_the_page_only_shows() {
    let node = Server::node_with(&["--buckets", "16"]);
    let mut page = Page::open(node.http_port(), DESK, "light");
    page.wait(
        "document.getElementById('settings-note').textContent.includes('--admin-token-file')",
    );
    assert_eq!(page.run("document.querySelectorAll('#orders button').length"), 0);
    let refused = page.run(
        "fetch('/api/leave', { method: 'POST', body: '{}', headers: { 'content-type': 'application/json' } })
         .then((it) => it.status)",
    );
    assert_eq!(refused, 403);
    assert_eq!(node.client().run("PING").to_string(), "PONG");
}

#[test]
fn with_the_token_settings_are_changed_and_buckets_split() {
    let token = TokenFile::new();
    let path = token.0.to_str().expect("a path in plain characters");
    let node = Server::node_with(&["--buckets", "16", "--admin-token-file", path]);
    let mut page = Page::open(node.http_port(), DESK, "light");
    page.wait("document.querySelector('#orders button')?.textContent === 'Unlock'");

    unlock(&mut page, "wrong");
    page.click("button[aria-label='Change min-buckets']");
    page.press("Enter");
    page.wait("document.getElementById('said').textContent.includes('missing or wrong')");
    page.wait("document.querySelector('#orders button')?.textContent === 'Unlock'");

    unlock(&mut page, TOKEN);
    page.click("button[aria-label='Change min-buckets']");
    page.press("Control+a");
    page.write("4");
    page.press("Enter");
    let value = "[...document.querySelectorAll('#settings-list dt')].find((it) => it.textContent === 'min-buckets').nextElementSibling.textContent";
    page.wait(&format!("{value} === '4'"));
    assert_eq!(node.client().status()["settings"]["min-buckets"], "4");

    page.click(".chip canvas");
    page.wait("document.querySelector('#orders button').textContent.startsWith('Split 000F/')");
    page.click("#orders button");
    page.click("#dialog .strong");
    page.wait("document.getElementById('picture-note').textContent.startsWith('31 buckets')");
}
