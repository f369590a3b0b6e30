//! How the page looks: contrast in both schemes, narrow windows, paper, and its picture in the documentation.

use super::*;
use crate::browser::is_picture_of;

/// Every text with too little contrast (WCAG AA), and every sign and bar.
const FAINT: &str = include_str!("../page/contrast.js");

const FRAGMENTS: [&str; 7] = [
    "",
    "#view=nad&item=nad:ran-du/management",
    "#view=range&item=range:whereabouts+10.40.0.0/28",
    "#view=resource&item=resource:openshift.io/cx7_user",
    "#view=pf&item=pf:worker-1/ens1f0",
    "#view=policy&item=policy:sriov-network-operator/user-plane",
    "#view=user&item=user:Pod+tenant-b/web-0",
];

#[test]
fn a_map_can_be_read_in_both_schemes() {
    let page = example();
    let Some(mut browser) = Browser::start() else { return };
    for scheme in ["light", "dark"] {
        browser.prefer("screen", scheme);
        for fragment in FRAGMENTS {
            browser.open(&page.path, fragment);
            let contrast = browser.value(FAINT);
            assert_eq!(contrast["found"], serde_json::json!([]), "{scheme} {fragment}");
            assert!(contrast["seen"].as_u64().unwrap() > 30, "{contrast}");
        }
    }
}

#[test]
fn a_narrow_map_does_not_scroll_sideways() {
    let page = example();
    let Some(mut browser) = Browser::start() else { return };
    for width in [360, 480, 800, 1280, 2400] {
        browser.resize(width, 900);
        for fragment in FRAGMENTS {
            browser.open(&page.path, fragment);
            assert_eq!(browser.value("document.documentElement.scrollWidth"), width, "{fragment}");
        }
    }
}

/// A severity is a word or has its own shape, and a full range says so in words.
#[test]
fn a_map_is_read_without_colour() {
    let page = example();
    let Some(mut browser) = Browser::start() else { return };
    browser.open(&page.path, "#view=nad&q=ran-du/management");
    assert_eq!(browser.value("document.querySelector('.row .sign').textContent"), "warn");
    browser.open(&page.path, "");
    let bars = "[...document.querySelectorAll('.line')].map((line) => [line.querySelector('.measure').textContent, line.querySelector('rect').className.baseVal])";
    let bars = browser.value(bars);
    assert_eq!(bars[0], serde_json::json!(["14 of 14 taken · full", "deny"]));
    assert!(bars.as_array().unwrap().iter().all(|bar| bar[0].as_str().unwrap().contains([' ', '%'])), "{bars}");
}

#[test]
fn paper_has_no_controls() {
    let page = example();
    let Some(mut browser) = Browser::start() else { return };
    browser.prefer("print", "dark");
    browser.open(&page.path, "#view=nad&item=nad:ran-du/management");
    let visible = "[...document.querySelectorAll('input, select, .close, #rest, [role=tab]')].filter((one) => one.checkVisibility()).length";
    assert_eq!(browser.value(visible), 0);
    assert!(strings(browser.value(ROWS)).len() == 9, "the list is there beside the open item");
    // "%PDF-", in base 64.
    assert!(browser.printed().starts_with("JVBERi0"));
}

#[test]
fn equal_input_gives_equal_maps() {
    assert_eq!(example().html, example().html);
}

/// docs/map.png is the page of the example.
#[test]
fn picture_of_a_map_is_current() {
    let page = example();
    is_picture_of("docs/map.png", &page.html, |browser| {
        browser.resize(1200, 900);
        browser.open(&page.path, "#view=range&item=range:whereabouts+10.70.0.0/24");
        browser.picture()
    });
}
