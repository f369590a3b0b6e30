//! Search, filters, addresses, click-through, keys, and what breaks without an object.

use super::*;

fn press(browser: &mut Browser, key: &str) {
    let code = match key {
        "Enter" => 13,
        "Escape" => 27,
        "ArrowUp" => 38,
        "ArrowDown" => 40,
        "ArrowRight" => 39,
        "/" => 191,
        other => panic!("{other}: no such key"),
    };
    let text = match key {
        "/" => "/",
        "Enter" => "\r",
        _ => "",
    };
    browser.press(key, code, text);
}

#[test]
fn search_and_filters_combine() {
    let page = example();
    let Some(mut browser) = Browser::start() else { return };
    // (fragment, the rows)
    for (fragment, want) in [
        ("#view=nad&q=edge-monitoring/telemetry+mon", &["edge-monitoring/probes", "edge-monitoring/telemetry"] as &[_]),
        ("#view=nad&q=VLAN+310", &["core-5g/n3-user-plane"]),
        ("#view=nad&namespace=core-5g", &["core-5g/n3-user-plane", "core-5g/n4-session"]),
        ("#view=nad&namespace=core-5g&q=n4", &["core-5g/n4-session"]),
        ("#view=nad&namespace=tenant-a&node=worker-2", &[]),
        ("#view=user&q=10.31.0.3", &["core-5g/upf-2"]),
        ("#view=user&node=worker-1&namespace=core-5g", &["core-5g/upf-0", "core-5g/upf-3", "core-5g/upf-6"]),
        ("#view=network&findings=conflicts", &["sriov-network-operator/management"]),
        ("#view=range&namespace=ran-du", &["10.40.0.0/28", "10.80.0.0/24"]),
        ("#view=pf&node=worker-3", &["worker-3/ens1f0", "worker-3/ens1f1"]),
        ("#view=policy&node=worker-3&q=storage", &["sriov-network-operator/storage"]),
        ("#view=vlan&q=400", &["VLAN 400"]),
        ("#view=ovn", &["tenant-blue"]),
    ] {
        browser.open(&page.path, fragment);
        assert_eq!(strings(browser.value(ROWS)), want, "{fragment}");
        let address = browser.value("decodeURIComponent(location.hash).replaceAll('+', ' ')");
        assert_eq!(address, fragment.replace('+', " "), "the address stays");
    }
    browser.open(&page.path, "#view=nad");
    assert_eq!(strings(browser.value(ROWS)).len(), 9);
    choose(&mut browser, "namespace", "storage");
    assert_eq!(strings(browser.value(ROWS)), ["storage/backup"]);
    assert_eq!(browser.value("document.getElementById('status').textContent"), "1 of 9 shown");
    browser.click("#reset");
    assert_eq!(strings(browser.value(ROWS)).len(), 9);
    browser.write("nothing like this");
    assert_eq!(browser.value("document.getElementById('empty').checkVisibility()"), true);
}

#[test]
fn a_range_leads_to_its_pods() {
    let page = example();
    let Some(mut browser) = Browser::start() else { return };
    browser.open(&page.path, "#view=range");
    let rows = strings(browser.value(ROWS));
    assert_eq!(
        rows[..3],
        ["10.70.0.0/24", "probes 10.70.0.64/26", "10.40.0.0/28"],
        "conflicts, then the fullest: {rows:?}"
    );
    browser.open(&page.path, "#view=range&q=10.40");
    let full = "document.querySelector('#rows .measure').textContent";
    assert_eq!(browser.value(full), "14 of 14 taken · full");
    browser.click("#rows .row");
    assert_eq!(browser.value(OPEN), "10.40.0.0/28");
    assert!(section(&mut browser, "Leases").contains("10.40.0.2ran-du/du-1net1"));
    browser.click("#detail td .chip");
    assert_eq!(browser.value(OPEN), "ran-du/du-0");
    assert!(section(&mut browser, "NADs").contains("ran-du/fronthaul"));
    assert!(section(&mut browser, "Leases").contains("10.40.0.1"));
    // What is not visible is said.
    browser.open(&page.path, "#view=range&item=range:host-local+10.60.0.0/24+10.60.0.1-10.60.0.254");
    let text = browser.value("document.querySelector('#detail dl').textContent");
    assert!(text.as_str().unwrap().contains("not visible: host-local keeps its leases"), "{text}");
}

#[test]
fn deleting_shows_what_breaks() {
    let page = example();
    let Some(mut browser) = Browser::start() else { return };
    // (item, what the section says)
    for (item, want) in [
        ("nad:tenant-a/blue", &["1 pod selects it", "Pod tenant-a/web-0"] as &[_]),
        ("nad:core-5g/n4-session", &["The operator creates it again", "Delete the network instead"]),
        (
            "network:SriovNetwork sriov-network-operator/n3-user-plane",
            &["deletes the NAD core-5g/n3-user-plane", "7 pods select that NAD", "Pod core-5g/upf-6"],
        ),
        (
            "policy:sriov-network-operator/user-plane",
            &["Nothing on this map offers cx7_user any more: 2 networks, 2 NADs and 21 pods", "Pod ran-du/du-13"],
        ),
        ("nad:edge-monitoring/telemetry", &["3 pods select it", "10.70.0.0/24 is then in no NAD"]),
    ] {
        browser.open(&page.path, &format!("#view=nad&item={}", item.replace(' ', "+")));
        let text = section(&mut browser, "If you delete this");
        want.iter().for_each(|want| assert!(text.contains(want), "{item}: {want}: {text}"));
    }
    // What is no object cannot be deleted.
    browser.open(&page.path, "#view=vlan&item=vlan:310");
    assert_eq!(section(&mut browser, "If you delete this"), "");
    // A NAD that is not on the map is said to be missing.
    browser.open(&page.path, "#item=user:Pod+tenant-b/web-0");
    assert_eq!(browser.value("document.querySelector('.missing').textContent"), "Not on this map: tenant-a/green");
}

#[test]
fn conflicts_come_first_and_lead_to_both_objects() {
    let page = example();
    let Some(mut browser) = Browser::start() else { return };
    browser.open(&page.path, "");
    let conflict = browser.value("document.querySelector('.conflict').textContent");
    assert!(conflict.as_str().unwrap().contains("ipam/overlap"), "{conflict}");
    browser.click(".conflict .chip");
    assert_eq!(browser.value(OPEN), "edge-monitoring/probes");
    browser.click("#detail .finding .chip");
    assert_eq!(browser.value(OPEN), "edge-monitoring/telemetry");
    browser.open(&page.path, "#view=network");
    assert_eq!(strings(browser.value(ROWS))[0], "sriov-network-operator/management");
    assert_eq!(browser.value("document.querySelector('.row .sign').textContent"), "conflict");
    // What two NADs have against each other is marked on what they share, too.
    for (fragment, want) in [("#view=range&findings=conflicts", 2), ("#view=ovn&findings=conflicts", 1)] {
        browser.open(&page.path, fragment);
        assert_eq!(strings(browser.value(ROWS)).len(), want, "{fragment}");
    }
    browser.open(&page.path, "#view=finding");
    browser.click("#rows .row");
    assert_ne!(browser.value(OPEN), "");
}

#[test]
fn keys_search_move_open_and_close() {
    let page = example();
    let Some(mut browser) = Browser::start() else { return };
    browser.open(&page.path, "#view=nad");
    let focused = "document.activeElement.id || document.activeElement.querySelector('.name')?.textContent || document.activeElement.textContent";
    press(&mut browser, "/");
    assert_eq!(browser.value(focused), "search");
    browser.write("core");
    press(&mut browser, "ArrowDown");
    assert_eq!(browser.value(focused), "core-5g/n3-user-plane");
    press(&mut browser, "ArrowDown");
    assert_eq!(browser.value(focused), "core-5g/n4-session");
    press(&mut browser, "Enter");
    assert_eq!(browser.value(OPEN), "core-5g/n4-session");
    assert_eq!(browser.value(focused), "core-5g/n4-session", "the heading");
    press(&mut browser, "Escape");
    assert_eq!(browser.value(OPEN), "");
    assert_eq!(browser.value(focused), "core-5g/n4-session", "back in the list");
    press(&mut browser, "ArrowUp");
    press(&mut browser, "ArrowUp");
    assert_eq!(browser.value(focused), "search");
    press(&mut browser, "Escape");
    assert_eq!(strings(browser.value(ROWS)).len(), 9);
    browser.value("document.getElementById('tab-nad').focus()");
    press(&mut browser, "ArrowRight");
    assert_eq!(browser.value("document.querySelector('[aria-selected=true]').id"), "tab-range");
}

/// Tab reaches every control, and each has a name.
#[test]
fn controls_have_names() {
    let page = example();
    let Some(mut browser) = Browser::start() else { return };
    for fragment in ["", "#view=range", "#view=nad&item=nad:tenant-a/blue"] {
        browser.open(&page.path, fragment);
        let nameless = "[...document.querySelectorAll('button, a, input, select')].filter((one) => one.checkVisibility()).filter((one) => !(one.textContent.trim() || one.ariaLabel || one.labels?.length)).length";
        assert_eq!(browser.value(nameless), 0, "{fragment}");
        let images = "[...document.querySelectorAll('svg')].filter((one) => !one.getAttribute('aria-label')).length";
        assert_eq!(browser.value(images), 0, "{fragment}");
    }
}
