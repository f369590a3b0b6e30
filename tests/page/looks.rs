//! How a page looks: contrast in both schemes, on paper, in narrow windows, and its picture in the documentation.

use super::*;
use crate::browser::is_picture_of;

/// Everything with too little contrast (WCAG AA): texts, and the signs and bars beside them.
const FAINT: &str = include_str!("contrast.js");

#[test]
fn everything_can_be_read_in_both_schemes() {
    let Some(mut browser) = Browser::start() else { return };
    for page in [sites(), log(), clean(), check(&["examples/sites.yaml", "tests/hostile"])] {
        let mut pictures = Vec::new();
        for scheme in ["light", "dark"] {
            browser.prefer("screen", scheme);
            for fragment in ["#open=*", "#severity=warn&namespace=ran-du"] {
                browser.open(&page.path, fragment);
                let contrast = browser.value(FAINT);
                assert_eq!(contrast["found"], serde_json::json!([]), "{scheme} {fragment}");
                assert!(contrast["seen"].as_u64().unwrap() > 8, "{contrast}");
            }
            pictures.push(browser.picture());
        }
        assert_ne!(pictures[0], pictures[1], "dark is another picture");
    }
}

/// A severity is a word, beside a sign that has its own shape and letter.
#[test]
fn severities_are_told_without_colour() {
    let page = sites();
    let Some(mut browser) = Browser::start() else { return };
    browser.open(&page.path, "#open=*");
    let signs = "Object.fromEntries(['deny', 'patch', 'warn'].map((word) => { \
        const of = document.querySelector('.entry summary > .sign.' + word), style = getComputedStyle(of, '::before'); \
        return [of.textContent, style.clipPath + ' ' + style.content]; }))";
    let signs = browser.value(signs);
    let signs = signs.as_object().unwrap();
    assert_eq!(signs.keys().collect::<Vec<_>>(), ["deny", "patch", "warn"]);
    let different: std::collections::BTreeSet<_> = signs.values().map(Value::to_string).collect();
    assert_eq!(different.len(), 3, "{signs:?}");
}

#[test]
fn narrow_windows_do_not_scroll_sideways() {
    let Some(mut browser) = Browser::start() else { return };
    for page in [sites(), log(), clean()] {
        for width in [360, 480, 800, 1280, 2400] {
            browser.resize(width, 900);
            browser.open(&page.path, "#open=*");
            let found = browser.value("document.documentElement.scrollWidth");
            assert_eq!(found, width, "{found} wide");
        }
    }
    // The longest kind breaks between its words only.
    browser.resize(360, 900);
    browser.open(&sites().path, "");
    let lines = "(() => { const of = [...document.querySelectorAll('.of')].find((one) => one.textContent.startsWith('NetworkAttachmentDefinition')); \
        const range = document.createRange(), words = [...of.childNodes].filter((node) => node.nodeType === 3).slice(0, 3); \
        return words.map((word) => { range.selectNodeContents(word); return range.getClientRects().length; }); })()";
    assert_eq!(browser.value(lines).as_array().unwrap()[..2], [1, 1]);
}

/// Nothing moves while a page loads.
#[test]
fn nothing_moves_while_the_page_loads() {
    let Some(mut browser) = Browser::start() else { return };
    let shifts = "new Promise((done) => { new PerformanceObserver((list) => done(list.getEntries().map((one) => one.value))).observe({ type: 'layout-shift', buffered: true }); \
        requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(() => done([]), 100))); })";
    for page in [sites(), log(), many(1000)] {
        browser.open(&page.path, "");
        // Of a long page, a browser with little time shows more for a moment than the script leaves. Up to 0.1 nobody is disturbed.
        let sum: f64 = browser.value(shifts).as_array().unwrap().iter().map(|shift| shift.as_f64().unwrap()).sum();
        assert!(sum < 0.1, "{sum}");
    }
}

#[test]
fn paper_has_everything_and_no_controls() {
    let Some(mut browser) = Browser::start() else { return };
    for page in [sites(), log()] {
        browser.prefer("print", "dark");
        browser.open(&page.path, "");
        let colours =
            "(() => { const style = getComputedStyle(document.body); return [style.color, style.backgroundColor]; })()";
        assert_eq!(browser.value(colours), serde_json::json!(["rgb(0, 0, 0)", "rgb(255, 255, 255)"]));
        let visible = |selector: &str| {
            format!(
                "[...document.querySelectorAll('{selector}')].filter((one) => one.checkVisibility({{ contentVisibilityAuto: true }})).length"
            )
        };
        assert_eq!(browser.value(&visible("input, select, .copy, .expand, .rest")), 0);
        let height = "[...document.querySelectorAll('.entry .message, .entry pre')].filter((one) => one.getBoundingClientRect().height < 10).length";
        assert_eq!(browser.value(height), 0, "closed entries are printed");
        // "%PDF-", in base 64.
        assert!(browser.printed().starts_with("JVBERi0"));
        browser.prefer("screen", "light");
        browser.open(&page.path, "");
        assert!(browser.value(&visible("input, select")).as_u64().unwrap() > 0);
        assert_eq!(browser.value(&visible(".message")), 0, "closed at first");
    }
}

#[test]
fn page_without_findings_says_so() {
    let page = clean();
    let Some(mut browser) = Browser::start() else { return };
    browser.open(&page.path, "");
    assert_eq!(browser.value("document.querySelector('.lead').textContent"), "No findings");
    assert_eq!(browser.value("document.querySelector('.verdict').textContent"), "1 object checked, nothing to fix");
    assert_eq!(browser.value("document.querySelectorAll('script, input, select, button').length"), 0);
    let unread = check(&["tests/shown/good.yaml", "tests/hostile"]);
    browser.open(&unread.path, "");
    let alert = browser.value("document.querySelector('.alert').textContent");
    assert!(alert.as_str().unwrap().contains("could not be read and not judged"), "{alert}");
}

#[test]
fn equal_input_gives_equal_bytes() {
    assert_eq!(sites().html, sites().html);
    assert_eq!(log().html, log().html);
}

/// docs/page.png is the page of the example.
#[test]
fn picture_in_the_documentation_is_current() {
    let page = sites();
    is_picture_of("docs/page.png", &page.html, |browser| {
        browser.resize(1100, 1240);
        browser.open(&page.path, "#namespace=ran-du");
        browser.value("(() => { const entry = [...document.querySelectorAll('.entry')].find((one) => one.querySelector('b').textContent === 'fronthaul-control'); entry.firstChild.open = true; scrollTo(0, 0); })()");
        browser.picture()
    });
}
