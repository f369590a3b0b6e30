//! Search, filters and charts count together, and the address holds them.

use super::*;

#[test]
fn filters_combine() {
    let page = sites();
    let Some(mut browser) = Browser::start() else { return };
    browser.open(&page.path, "");
    let all = strings(browser.value(NAMES));
    assert!(all.len() > 8, "{all:?}");
    let severities = "[...document.querySelectorAll('.entry summary > .sign')].map((sign) => sign.textContent)";
    let severities = strings(browser.value(severities));
    let weight = |word: &String| ["deny", "patch", "warn"].iter().position(|one| one == word).unwrap();
    assert!(severities.is_sorted_by_key(weight), "the worst come first: {severities:?}");

    // Each filter narrows what the others leave.
    choose(&mut browser, "severity", "deny");
    let denied = strings(browser.value(NAMES));
    assert!(denied.len() < all.len() && denied.iter().all(|name| all.contains(name)), "{denied:?}");
    choose(&mut browser, "kind", "NetworkAttachmentDefinition");
    choose(&mut browser, "namespace", "ran-du");
    assert_eq!(strings(browser.value(NAMES)), ["fronthaul-control", "fronthaul-user"]);
    choose(&mut browser, "rule", "sriov/tx-rate");
    assert_eq!(strings(browser.value(NAMES)), ["fronthaul-user"]);
    browser.value("document.getElementById('search').focus()");
    browser.write("FRONTHAUL min_tx");
    assert_eq!(strings(browser.value(NAMES)), ["fronthaul-user"]);
    assert_eq!(browser.value("document.querySelector('.count').textContent"), format!("1 of {}", all.len()));
    assert_eq!(browser.value("document.getElementById('status').textContent"), "1 finding shown");
    // A severity and a rule must be those of one finding: this object is denied, and warns by another rule.
    choose(&mut browser, "rule", "sriov/no-effect");
    assert_eq!(strings(browser.value(NAMES)), [] as [&str; 0]);
    assert_eq!(browser.value("document.querySelector('.empty').checkVisibility()"), true);

    browser.click("#reset");
    assert_eq!(strings(browser.value(NAMES)), all);
    assert_eq!(browser.value("document.getElementById('reset').disabled"), true);
    // Objects without a namespace have a name for it too.
    choose(&mut browser, "namespace", "");
    assert_eq!(strings(browser.value(NAMES)), all, "the first option of that value chooses everything");
    browser.click("[data-pick=namespace][value='']");
    assert_eq!(strings(browser.value(NAMES)), ["vlan-trunk"]);
    assert!(chart(&mut browser, "namespace").len() > 3, "the other namespaces can still be chosen");
}

/// A search leaves the namespaces of what it finds, and a chart shows what a choice in it would give.
#[test]
fn charts_count_what_search_and_filters_leave() {
    let page = sites();
    let Some(mut browser) = Browser::start() else { return };
    browser.open(&page.path, "#q=fronthaul-user");
    assert_eq!(strings(browser.value(NAMES)), ["fronthaul-user"]);
    let namespaces = chart(&mut browser, "namespace");
    assert!(matches!(&namespaces[..], [one] if one.starts_with("ran-du: ") && one.ends_with(" 1")), "{namespaces:?}");
    let rules = chart(&mut browser, "rule");
    assert!(rules.iter().any(|row| row.starts_with("sriov/tx-rate: 1 ")), "{rules:?}");

    // A row chooses its value, and gives it up again.
    browser.open(&page.path, "");
    let before = chart(&mut browser, "rule");
    browser.click("[data-chart=namespace] [value=ran-du]");
    assert_eq!(browser.value("document.querySelector('select[name=namespace]').value"), "ran-du");
    assert_eq!(browser.value("document.querySelector('[data-chart=namespace] [value=ran-du]').ariaPressed"), "true");
    assert_ne!(chart(&mut browser, "rule"), before);
    assert_eq!(strings(browser.value(NAMES)).len(), 3);
    browser.click("[data-chart=namespace] [value=ran-du]");
    assert_eq!(chart(&mut browser, "rule"), before);
    // So does a figure.
    browser.click(".figures [value=patch]");
    assert_eq!(strings(browser.value(NAMES)), ["n3-user-plane"]);

    // The page's own counts are those of the script.
    let counts =
        "JSON.stringify([...document.querySelectorAll('table[data-chart]')].map((table) => table.textContent))";
    let by_script =
        browser.value(&format!("(() => {{ document.getElementById('reset').click(); return {counts}; }})()"));
    browser.open(&page.path, "");
    let plain = format!(
        "(() => {{ const page = new DOMParser().parseFromString({}, 'text/html'); \
         return JSON.stringify([...page.querySelectorAll('table[data-chart]')].map((table) => table.textContent)); }})()",
        Value::from(page.html.split_once("<body>").unwrap().1.split("<script>").next().unwrap())
    );
    assert_eq!(browser.value(&plain), by_script);
}

#[test]
fn address_holds_the_view() {
    let page = sites();
    let Some(mut browser) = Browser::start() else { return };
    browser.open(&page.path, "");
    choose(&mut browser, "namespace", "ran-du");
    browser.value("document.getElementById('search').focus()");
    browser.write("fronthaul");
    browser.click(".entry:not([hidden]) summary");
    assert_eq!(strings(browser.value(OPEN)), ["fronthaul-control"]);
    let fragment = address(&mut browser);
    assert_eq!(fragment, "#q=fronthaul&namespace=ran-du&open=ran-du/NetworkAttachmentDefinition/fronthaul-control");

    // Opened again it is the same view, and the object has the focus.
    browser.open(&page.path, &fragment);
    assert_eq!(strings(browser.value(NAMES)), ["fronthaul-control", "fronthaul-user"]);
    assert_eq!(strings(browser.value(OPEN)), ["fronthaul-control"]);
    assert_eq!(browser.value("document.activeElement.querySelector('b').textContent"), "fronthaul-control");
    let place = browser.value("document.activeElement.getBoundingClientRect().top - document.querySelector('.filters').getBoundingClientRect().bottom");
    assert!(place.as_f64().unwrap() >= 0.0, "the filters cover the object: {place}");

    // Another address in the same page, as its reader would paste it.
    browser.value("location.hash = '#open=core-5g/NetworkAttachmentDefinition/n3-user-plane'");
    let opened = format!("new Promise((done) => setTimeout(() => done({OPEN})))");
    assert_eq!(strings(browser.value(&opened)), ["n3-user-plane"]);
    assert_eq!(browser.value("document.getElementById('search').value"), "");
    // What nobody wrote is ignored.
    browser.open(&page.path, "#open=no/such/object&rule=no-rule&q=");
    assert!(strings(browser.value(NAMES)).len() > 8 && strings(browser.value(OPEN)).is_empty());
    browser.open(&page.path, "#open=*");
    assert_eq!(strings(browser.value(OPEN)), strings(browser.value(NAMES)));
    assert_eq!(address(&mut browser), "#open=*");
}

/// The page of an audit log filters its findings, loops and writers together.
#[test]
fn filters_of_an_audit_log_concern_every_list() {
    let page = log();
    let Some(mut browser) = Browser::start() else { return };
    const ROWS: &str = "[...document.querySelectorAll('[data-entry]')].filter((one) => one.checkVisibility()).map((one) => one.textContent.toLowerCase())";
    browser.open(&page.path, "");
    let all = strings(browser.value(ROWS));
    assert!(all.len() > 8, "{} rows", all.len());
    browser.value("document.getElementById('search').focus()");
    browser.write("REPAIRER telco");
    let found = strings(browser.value(ROWS));
    assert!(!found.is_empty() && found.len() < all.len(), "{found:?}");
    assert!(found.iter().all(|row| row.contains("repairer") && row.contains("telco")), "{found:?}");

    browser.open(&page.path, "#rule=audit-log/blind-status-write");
    let rules = "[...document.querySelectorAll('.entry:not([hidden]) .tag')].map((tag) => tag.textContent)";
    let rules = strings(browser.value(rules));
    assert_eq!(rules, ["audit-log/blind-status-write", "audit-log/blind-status-write"]);
    assert!(strings(browser.value(ROWS)).len() > 2, "a writer has no rule: the filter does not concern it");

    browser.open(&page.path, "#q=telco&open=*");
    assert_eq!(strings(browser.value(OPEN)).len(), 2, "the finding and the loop");
    // Each list has a button that opens or closes what it shows.
    for (list, open) in [(0, 1), (1, 0), (1, 1), (0, 2)] {
        browser.value(&format!("document.querySelectorAll('.expand')[{list}].click()"));
        assert_eq!(strings(browser.value(OPEN)).len(), open, "list {list}");
    }
    let marks = "[...document.querySelectorAll('.strip .mark')].filter((mark) => mark.checkVisibility()).length";
    assert_eq!(browser.value(marks), 24);
    let columns = "[...document.querySelectorAll('.scroll th.number')].map((title, at) => [title, document.querySelectorAll('.scroll tbody tr:first-child .number')[at]].map((cell) => Math.round(cell.getBoundingClientRect().right)))";
    browser.open(&page.path, "");
    for edges in browser.value(columns).as_array().unwrap() {
        assert_eq!(edges[0], edges[1], "a number stands below its title");
    }
}
