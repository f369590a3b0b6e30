//! Everything can be reached and done with the keyboard, and has a name for those who hear the page.

use super::*;

/// The keys that are pressed: their names and codes.
fn press(browser: &mut Browser, key: &str) {
    let (code, text) = match key {
        "Tab" => (9, ""),
        "Enter" => (13, "\r"),
        "Escape" => (27, ""),
        " " => (32, " "),
        "End" => (35, ""),
        "Home" => (36, ""),
        "ArrowUp" => (38, ""),
        "ArrowDown" => (40, ""),
        "/" => (191, "/"),
        other => panic!("{other}: no such key"),
    };
    browser.press(key, code, text);
}

#[test]
fn keys_search_move_and_open() {
    let page = sites();
    let Some(mut browser) = Browser::start() else { return };
    browser.open(&page.path, "");
    let all = strings(browser.value(NAMES));
    let focused = "document.activeElement.id || document.activeElement.querySelector('b')?.textContent";
    press(&mut browser, "/");
    assert_eq!(browser.value(focused), "search");
    assert_eq!(browser.value("document.activeElement.value"), "", "the key itself is not typed");
    browser.write("fronthaul");
    press(&mut browser, "ArrowDown");
    assert_eq!(browser.value(focused), "fronthaul-control");
    press(&mut browser, "ArrowDown");
    assert_eq!(browser.value(focused), "fronthaul-user");
    press(&mut browser, "ArrowDown");
    assert_eq!(browser.value(focused), "fronthaul-user", "the last one");
    press(&mut browser, "Enter");
    assert_eq!(strings(browser.value(OPEN)), ["fronthaul-user"]);
    press(&mut browser, "Enter");
    assert_eq!(strings(browser.value(OPEN)), [] as [&str; 0]);
    press(&mut browser, "Home");
    press(&mut browser, "ArrowUp");
    assert_eq!(browser.value(focused), "search", "above the first one");
    press(&mut browser, "Escape");
    assert_eq!(browser.value("document.activeElement.value"), "");
    assert_eq!(strings(browser.value(NAMES)), all);
    press(&mut browser, "ArrowDown");
    press(&mut browser, "End");
    assert_eq!(browser.value(focused), **all.last().unwrap());
    // A slash is typed where text is typed.
    press(&mut browser, "/");
    press(&mut browser, "/");
    assert_eq!(browser.value("document.activeElement.value"), "/");
}

/// Tab goes through everything once, in the order of the page, and what has the focus is marked.
#[test]
fn tab_reaches_everything_and_shows_where_it_is() {
    let page = sites();
    let Some(mut browser) = Browser::start() else { return };
    browser.open(&page.path, "#q=fronthaul-control&open=*");
    browser.value("document.activeElement.blur(); document.body.tabIndex = -1; document.body.focus(); document.body.removeAttribute('tabindex')");
    const STOP: &str = "(() => { const at = document.activeElement, style = getComputedStyle(at); \
        return { what: at.className || at.id || at.name || at.localName, order: [...document.querySelectorAll('*')].indexOf(at), \
        outline: style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 2, isBody: at === document.body }; })()";
    let mut stops: Vec<Value> = Vec::new();
    for _ in 0..200 {
        press(&mut browser, "Tab");
        let stop = browser.value(STOP);
        if stop["isBody"] == true || stops.iter().any(|one| one["order"] == stop["order"]) {
            break;
        }
        assert_eq!(stop["outline"], true, "{stop}");
        stops.push(stop);
    }
    let names: Vec<_> = stops.iter().map(|stop| stop["what"].as_str().unwrap()).collect();
    for want in [
        "skip",
        "figure",
        "pick",
        "search",
        "severity",
        "rule",
        "namespace",
        "kind",
        "plain",
        "plain expand needs-script",
        "summary",
    ] {
        assert!(names.contains(&want), "{want} is not reached: {names:?}");
    }
    for want in ["copy needs-script link", "copy needs-script text"] {
        assert!(names.contains(&want), "{want} is not reached: {names:?}");
    }
    assert!(stops.is_sorted_by_key(|stop| stop["order"].as_u64()), "{names:?}");

    // The first stop skips to the list.
    browser.open(&page.path, "#q=fronthaul");
    press(&mut browser, "Tab");
    press(&mut browser, "Enter");
    assert_eq!(browser.value("document.activeElement.id"), "list");
    assert_eq!(browser.value("document.getElementById('search').value"), "fronthaul", "the filters stay");
}

#[test]
fn everything_has_a_name() {
    let Some(mut browser) = Browser::start() else { return };
    for page in [sites(), log(), clean()] {
        browser.open(&page.path, "#open=*");
        let nameless = "[...document.querySelectorAll('button, summary, input, select, svg[role=img]')].filter((one) => \
            !(one.ariaLabel || one.textContent.trim() || one.closest('label')?.textContent.trim())).map((one) => one.outerHTML)";
        assert_eq!(strings(browser.value(nameless)), [] as [&str; 0]);
        let landmarks = "['header', 'main', 'footer', 'h1'].map((name) => document.querySelectorAll(name).length)";
        assert_eq!(browser.value(landmarks), serde_json::json!([1, 1, 1, 1]));
        let levels = "[...document.querySelectorAll('h1, h2, h3')].map((title) => title.localName)";
        let levels = strings(browser.value(levels));
        assert!(
            levels.windows(2).all(|pair| pair[1] <= pair[0]
                || pair[1][1..].parse::<u8>().unwrap() == pair[0][1..].parse::<u8>().unwrap() + 1),
            "a level is left out: {levels:?}"
        );
    }
}

/// Copies go to the clipboard; where a browser does not allow that, through a selection.
#[test]
fn buttons_copy_fix_object_and_address() {
    let page = sites();
    let Some(mut browser) = Browser::start() else { return };
    for is_allowed in [true, false] {
        browser.open(&page.path, "#namespace=core-5g&open=core-5g/NetworkAttachmentDefinition/n3-user-plane");
        browser.value(&format!(
            "(() => {{ window.copies = []; window.announced = []; \
             new MutationObserver(() => announced.push(document.getElementById('announcement').textContent)).observe(document.getElementById('announcement'), {{ childList: true }}); \
             Object.defineProperty(navigator, 'clipboard', {{ value: {{ writeText: async (text) => {{ if (!{is_allowed}) throw new Error('denied'); copies.push(text); }} }} }}); \
             document.addEventListener('copy', () => copies.push(document.activeElement.value)); }})()"
        ));
        let mut copied = |selector: &str| {
            browser.value(&format!("document.querySelector(\".entry:not([hidden]) {selector}\").focus()"));
            press(&mut browser, "Enter");
            let copied = "new Promise((done) => { const look = () => copies.length && announced.includes('Copied') ? done(announced.splice(0).length > 0) : setTimeout(look); look(); })";
            assert_eq!(browser.value(copied), true, "{selector}");
            browser.value("copies.pop()").as_str().unwrap().to_owned()
        };
        let fix = copied("[data-copy=text]");
        assert!(fix.contains("openshift.io/cx7anl244"), "{fix}");
        let stored = copied("[data-copy=stored]");
        assert!(
            stored.starts_with("apiVersion: ")
                && stored.contains("\n    k8s.v1.cni.cncf.io/resourceName: openshift.io/cx7anl244\n"),
            "{stored}"
        );
        let address = copied("[data-copy=link]");
        assert!(
            address.starts_with("file://")
                && address.ends_with("#namespace=core-5g&open=core-5g/NetworkAttachmentDefinition/n3-user-plane"),
            "{address}"
        );
        // The copy is the object that admission would store: nothing of it changes any more.
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("stored.yaml");
        fs::write(&file, stored).unwrap();
        let again = check(&[file.to_str().unwrap()]);
        assert!(!again.html.contains("What admission would change"), "{}", again.html);
    }
}
