//! The picture follows the cluster: a joining node gets a box and fills it, a killed node turns red.
use e2e::{Cluster, Server};
use serde_json::json;

use crate::browser::{DESK, Page};

/// The numbers in the boxes: the copies that each node holds, the largest first.
const COPIES: &str = "[...document.querySelectorAll('.chip .held')].map((it) => it.textContent)
    .filter(Boolean).map((it) => it.split('+').map(Number)).map(([p, s]) => p + s).sort((a, b) => b - a)";

fn name_of(node: &Server) -> String {
    node.client().status()["node"].as_str().expect("a node has a name").to_owned()
}

fn box_of(name: &str) -> String {
    format!("document.querySelector('.chip[data-key=\"{name}\"]')")
}

/// Writes and reads some keys, so that the charts have something to show.
fn write_some(cluster: &Cluster) {
    let client = redis::cluster::ClusterClient::new(cluster.urls()).expect("addresses");
    let mut connection = client.get_connection().expect("a cluster client connects");
    for number in 0..3_000 {
        let key = format!("key:{number}");
        redis::cmd("SET").arg(&key).arg(number).exec(&mut connection).expect("a write is taken");
        redis::cmd("GET").arg(&key).exec(&mut connection).expect("a read is answered");
    }
}

#[test]
fn the_picture_changes_when_a_node_joins_and_a_killed_node_turns_red() {
    let mut cluster = Cluster::of(2, &["--buckets", "16"]);
    write_some(&cluster);
    let mut page = Page::open(cluster.nodes[0].http_port(), DESK, "light");
    page.wait("document.querySelectorAll('.chip').length === 2");
    page.wait("document.getElementById('health').dataset.state === 'good'");
    assert_eq!(page.run(COPIES), json!([16, 16]));

    let joined = name_of(cluster.join());
    page.wait(&box_of(&joined));
    cluster.wait_until_even();
    page.wait(&format!("JSON.stringify({COPIES}) === '[11,11,10]'"));
    // Its box is painted: there is some of the primary's colour in it. The script reads from a copy, because the
    // browser warns about repeated reads of a canvas that is painted again and again.
    let painted = format!(
        "(() => {{ const canvas = {}.querySelector('canvas');
        const copy = document.createElement('canvas').getContext('2d', {{ willReadFrequently: true }});
        [copy.canvas.width, copy.canvas.height] = [canvas.width, canvas.height];
        copy.drawImage(canvas, 0, 0);
        const {{ data }} = copy.getImageData(0, 0, canvas.width, canvas.height);
        let dark = 0; for (let i = 0; i < data.length; i += 4) if (data[i + 3] > 200 && data[i] < 60) dark++;
        return dark > 500; }})()",
        box_of(&joined)
    );
    page.wait(&painted);
    page.wait("document.getElementById('history').textContent.includes(' joins')");
    page.wait(
        "document.querySelectorAll('#members-table tr[data-state=\"well\"] .num').length >= 6",
    );
    page.wait("document.getElementById('health').dataset.state === 'good'");
    write_some(&cluster);
    page.wait("document.querySelectorAll('#chart-throughput .area').length === 3");
    page.shot("console.png", "#charts");

    let killed = name_of(&cluster.nodes[2]);
    cluster.kill(2);
    page.wait(&format!("{}?.dataset.state === 'dead'", box_of(&killed)));
    page.wait(&format!(
        "(() => {{ const probe = document.createElement('i'); probe.style.color = 'var(--dead)'; document.body.append(probe);
        const red = getComputedStyle(probe).color; probe.remove();
        return getComputedStyle({}).borderTopColor === red; }})()",
        box_of(&killed)
    ));
    page.wait(&format!(
        "document.querySelector('#members-table tr[data-name=\"{killed}\"][data-state=\"dead\"]')"
    ));
    page.wait("document.getElementById('history').textContent.includes('is declared dead')");
    cluster.wait_until_even();
    page.wait(&format!("JSON.stringify({COPIES}) === '[16,16]'"));
    page.wait("document.getElementById('health-title').textContent.startsWith('All is well')");
    page.assert_no_errors();
}
