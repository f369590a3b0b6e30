//! A page of ten thousand objects.

use super::*;

#[test]
fn ten_thousand_objects_load_and_filter() {
    const NUMBER: usize = 10_000;
    let page = many(NUMBER);
    let Some(mut browser) = Browser::start() else { return };
    browser.open(&page.path, "");
    let counts = "[document.querySelectorAll('.entry').length, [...document.querySelectorAll('.entry')].filter((one) => one.checkVisibility()).length]";
    assert_eq!(browser.value(counts), serde_json::json!([NUMBER, 200]), "all are there, and the first ones are shown");

    // Every one of them is searched and counted, not only those that are shown.
    let find = |browser: &mut Browser, words: &str| {
        let search = format!(
            "(() => {{ const from = performance.now(), search = document.getElementById('search'); search.value = {words:?}; \
             search.dispatchEvent(new Event('input')); document.body.offsetHeight; return performance.now() - from; }})()"
        );
        browser.value(&search).as_f64().unwrap()
    };
    find(&mut browser, "net-9999");
    assert_eq!(strings(browser.value(NAMES)), ["net-9999"]);
    find(&mut browser, "team-7");
    assert_eq!(browser.value("document.querySelector('.count').textContent"), "250 of 10000");
    let namespaces = chart(&mut browser, "namespace");
    assert!(matches!(&namespaces[..], [one] if one.starts_with("team-7: ") && one.ends_with(" 250")), "{namespaces:?}");
    assert_eq!(browser.value("document.querySelector('.rest').textContent"), "Show 50 more of 250");
    // The first search reads the whole page. The others take a fraction of a second; a loaded machine has ten.
    let slowest = ["net-1", "", "team-3", ""].map(|words| find(&mut browser, words)).into_iter().fold(0.0, f64::max);
    assert!(slowest < 10_000.0, "a search takes {slowest} ms");

    // More of them come when the end is near.
    browser.open(&page.path, "");
    let more = "new Promise((done) => { const list = document.querySelector('ol'); \
        new MutationObserver(() => done([...list.children].filter((one) => !one.hidden).length)).observe(list, { subtree: true, attributeFilter: ['hidden'] }); \
        document.querySelector('.rest').scrollIntoView(); })";
    assert!(browser.value(more).as_u64().unwrap() >= 400);

    // An address opens the last object too.
    let last = browser.value("[...document.querySelectorAll('.entry')].at(-1).dataset.entry");
    browser.open(&page.path, &format!("#open={}", last.as_str().unwrap()));
    assert_eq!(strings(browser.value(OPEN)), [last.as_str().unwrap().rsplit('/').next().unwrap()]);
    let top = browser.value("document.activeElement.getBoundingClientRect().top");
    assert!((0.0..900.0).contains(&top.as_f64().unwrap()), "{top}");
}

/// Paper has all of what matches, also what the window would show later.
#[test]
fn everything_that_matches_is_printed() {
    let page = many(210);
    let Some(mut browser) = Browser::start() else { return };
    browser.open(&page.path, "#namespace=team-7");
    browser.value("(() => { window.printed = []; for (const name of ['beforeprint', 'afterprint']) addEventListener(name, () => printed.push([...document.querySelectorAll('.entry')].filter((one) => !one.hidden).length)); })()");
    // "%PDF-", in base 64.
    assert!(browser.printed().starts_with("JVBERi0"));
    const PRINTED: &str =
        "new Promise((done) => { const look = () => printed.length % 2 ? setTimeout(look) : done(printed); look(); })";
    assert_eq!(browser.value(PRINTED), serde_json::json!([6, 6]));
    browser.value("document.getElementById('reset').click()");
    browser.printed();
    assert_eq!(browser.value(PRINTED), serde_json::json!([6, 6, 210, 200]));
}
