//! A map of ten thousand NADs and twenty thousand pods.

use std::fmt::Write as _;

use super::*;

const NADS: usize = 10_000;
const PODS: usize = 20_000;
/// The most that such a page may take.
const MAX_BYTES: usize = 12 << 20;

fn large() -> RenderedMap {
    let mut text = String::new();
    for number in 0..NADS {
        let _ = write!(
            text,
            "{{\"apiVersion\": \"k8s.cni.cncf.io/v1\", \"kind\": \"NetworkAttachmentDefinition\", \"metadata\": {{\"name\": \"net-{number}\", \"namespace\": \"team-{}\"}}, \
             \"spec\": {{\"config\": \"{{\\\"cniVersion\\\": \\\"1.0.0\\\", \\\"type\\\": \\\"vlan\\\", \\\"master\\\": \\\"ens{}\\\", \\\"vlanId\\\": {}, \
             \\\"ipam\\\": {{\\\"type\\\": \\\"whereabouts\\\", \\\"range\\\": \\\"10.{}.{}.0/24\\\"}}}}\"}}}}\n---\n",
            number % 200,
            number % 8,
            1 + number % 4000,
            number % 250,
            number / 250
        );
    }
    for number in 0..PODS {
        let nad = number % 200 + 200 * (number * 7 % 50);
        let _ = write!(
            text,
            "{{\"apiVersion\": \"v1\", \"kind\": \"Pod\", \"metadata\": {{\"name\": \"pod-{number}\", \"namespace\": \"team-{}\", \
             \"annotations\": {{\"k8s.v1.cni.cncf.io/networks\": \"net-{nad}\"}}}}, \"spec\": {{\"nodeName\": \"node-{}\", \"containers\": []}}}}\n---\n",
            number % 200,
            number % 300
        );
    }
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("large.yaml");
    fs::write(&file, text).unwrap();
    page(file.to_str().unwrap())
}

/// How long something takes, until the page is laid out again, in milliseconds.
fn time(browser: &mut Browser, what: &str) -> f64 {
    let timed = format!(
        "(() => {{ const from = performance.now(); {what}; document.body.offsetHeight; return performance.now() - from; }})()"
    );
    browser.value(&timed).as_f64().unwrap()
}

#[test]
fn ten_thousand_nads_and_twenty_thousand_pods() {
    let page = large();
    assert!(page.html.len() < MAX_BYTES, "{} bytes", page.html.len());
    let Some(mut browser) = Browser::start() else { return };
    browser.open(&page.path, "");
    let load = browser.value("performance.getEntriesByType('navigation')[0].loadEventEnd");
    let search = |words: &str| {
        format!(
            "const search = document.getElementById('search'); search.value = {words:?}; search.dispatchEvent(new Event('input'))"
        )
    };
    let select = |name: &str, value: &str| {
        format!(
            "const select = document.getElementById({name:?}); select.value = {value:?}; select.dispatchEvent(new Event('change'))"
        )
    };
    // The page gathers what searches read while nothing else is to be done.
    browser.value("new Promise((done) => setTimeout(done, 3000))");
    let steps = [
        ("open the NADs", "document.getElementById('tab-nad').click()".to_owned()),
        ("first search", search("net-9999")),
        ("search", search("net-1")),
        ("search for nothing", search("")),
        ("open the users", "document.getElementById('tab-user').click()".to_owned()),
        ("search users", search("pod-199")),
        ("clear", search("")),
        ("first filter by node", select("node", "node-7")),
        ("filter by namespace", select("namespace", "team-7")),
        ("clear all", "document.getElementById('reset').click()".to_owned()),
        ("open a pod", "document.querySelector('#rows .row').click()".to_owned()),
        ("open its NAD", "document.querySelector('#detail .chain li:nth-child(3) .chip').click()".to_owned()),
        ("overview", "document.getElementById('tab-overview').click()".to_owned()),
    ];
    let times: Vec<_> = steps.iter().map(|(name, step)| (*name, time(&mut browser, step))).collect();
    println!("{} KiB, loaded after {load} ms, then in ms: {times:.0?}", page.html.len() >> 10);
    // Far above what is measured on an idle machine: a busy one must not fail.
    assert!(times.iter().all(|(_, time)| *time < 10_000.0), "{times:?}");

    browser.open(&page.path, "#view=nad&q=net-9999");
    assert_eq!(strings(browser.value(ROWS)), ["team-199/net-9999"]);
    browser.open(&page.path, "#view=user");
    assert_eq!(browser.value("document.querySelectorAll('#rows .row').length"), 100, "the first chunk");
    assert_eq!(browser.value("document.getElementById('rest').textContent"), "Show 100 more of 20,000");
    let more = "new Promise((done) => { const rows = document.getElementById('rows'); new MutationObserver(() => done(rows.childElementCount)).observe(rows, { childList: true }); document.getElementById('rest').scrollIntoView(); })";
    assert!(browser.value(more).as_u64().unwrap() >= 200);
    browser.open(&page.path, "#view=user&namespace=team-7&node=node-7");
    assert_eq!(browser.value("document.querySelectorAll('#rows .row').length"), 34);
}

/// Paper has all rows that match.
#[test]
fn every_row_is_printed() {
    let page = large();
    let Some(mut browser) = Browser::start() else { return };
    browser.open(&page.path, "#view=user&namespace=team-7&q=pod-1");
    let matching = browser.value("document.getElementById('tab-user').querySelector('.count').textContent");
    browser.value("(() => { window.printed = 0; addEventListener('beforeprint', () => { printed = document.querySelectorAll('#rows .row').length; }); })()");
    // "%PDF-", in base 64.
    assert!(browser.printed().starts_with("JVBERi0"));
    let printed =
        "new Promise((done) => { const look = () => printed ? done(String(printed)) : setTimeout(look); look(); })";
    assert_eq!(browser.value(printed), matching);
}
