//! Text that was written to be interpreted, in every field that a tenant writes.

use serde_json::json;

use super::*;

const NASTY: &str = "</script><script>window.forged=1</script></style></title><img src=x onerror=window.forged=1>\" onclick=\"window.forged=1\" '><svg/onload=window.forged=1>";

#[test]
fn text_of_a_tenant_is_never_interpreted() {
    let config = json!({
        "cniVersion": NASTY, "name": NASTY, "type": "sriov", "link_state": NASTY, "vlan": NASTY, "mac": NASTY, "logFile": NASTY,
        "resourceName": NASTY, NASTY: NASTY, "Vlan": 1, "ipam": { "type": NASTY, "range": NASTY, NASTY: 1 },
    });
    let metadata = json!({
        "name": format!("n{NASTY}"), "namespace": format!("s{NASTY}"), "labels": { NASTY: NASTY },
        "annotations": { NASTY: NASTY, "k8s.v1.cni.cncf.io/resourceName": NASTY, "sriovnetwork.openshift.io/owner-ref": NASTY },
        "ownerReferences": [{ "kind": NASTY, "name": NASTY, "apiVersion": NASTY, "uid": NASTY }],
    });
    let objects = [
        json!({ "apiVersion": "k8s.cni.cncf.io/v1", "kind": "NetworkAttachmentDefinition", "metadata": metadata,
            "spec": { "config": format!("{config:#}"), NASTY: NASTY } }),
        json!({ "apiVersion": "k8s.cni.cncf.io/v1", "kind": "NetworkAttachmentDefinition", "metadata": metadata,
            "spec": { "config": NASTY } }),
        json!({ "apiVersion": "sriovnetwork.openshift.io/v1", "kind": "SriovNetwork", "metadata": metadata,
            "spec": { "resourceName": NASTY, "networkNamespace": NASTY, "ipam": NASTY, "linkState": NASTY, "spoofChk": NASTY,
                "capabilities": NASTY, "metaPlugins": NASTY, "vlan": NASTY, "trust": NASTY, NASTY: NASTY } }),
        // Admission completes this one: it has a change to show.
        json!({ "apiVersion": "k8s.cni.cncf.io/v1", "kind": "NetworkAttachmentDefinition",
            "metadata": { "name": "c", "annotations": { NASTY: NASTY } },
            "spec": { "config": json!({ "cniVersion": "1.0.0", "type": "sriov", "resourceName": "openshift.io/a", "x": NASTY }).to_string() } }),
    ];
    let directory = tempfile::tempdir().unwrap();
    // A file name has no slash.
    let file = directory.path().join(format!("f{}.yaml", NASTY.replace('/', "_")));
    fs::write(&file, objects.map(|object| object.to_string()).join("\n---\n")).unwrap();
    let page = check(&[file.to_str().unwrap()]);
    assert_eq!(page.html.matches("<script>").count(), 1);
    assert_eq!(page.html.matches("</script>").count(), 1);
    assert!(page.html.contains("What admission would change"));

    let Some(mut browser) = Browser::start() else { return };
    browser.open(&page.path, "");
    let elements = "['script', 'style', 'img', 'title', '[onclick]', '[onerror]', '[onload]'].map((name) => document.querySelectorAll(name).length)";
    assert_eq!(browser.value(elements), json!([1, 1, 0, 1, 0, 0, 0]));
    assert_eq!(strings(browser.value(NAMES)).iter().filter(|name| **name == format!("n{NASTY}")).count(), 3);
    // Choosing, searching, opening and copying work on it like on any text.
    browser.value(&format!(
        "document.querySelectorAll('.pick')[0].click(), document.getElementById('search').focus(), {NAMES}"
    ));
    browser.write("<script>");
    browser.value("document.querySelector('.expand').click()");
    assert!(!strings(browser.value(OPEN)).is_empty());
    let fragment = address(&mut browser);
    browser.open(&page.path, "");
    browser.value(&format!("location.hash = {fragment:?}"));
    let opened = format!("new Promise((done) => setTimeout(() => done({OPEN})))");
    assert!(!strings(browser.value(&opened)).is_empty());
    assert_eq!(browser.value("typeof window.forged"), "undefined");
    assert_eq!(browser.requests().len(), 1, "the page requests nothing else");
}

/// The page of `nadmit explain`: pods, NADs, nodes and node policies.
#[test]
fn text_in_a_plan_is_never_interpreted() {
    let config = json!({
        "cniVersion": NASTY, "name": NASTY, "type": "macvlan", "master": NASTY, "mac": NASTY,
        "ipam": { "type": "whereabouts", "range": NASTY, "gateway": NASTY, "exclude": [NASTY], "routes": [{ "dst": NASTY, "gw": NASTY }],
            "addresses": [{ "address": NASTY, "gateway": NASTY }], "dns": { "nameservers": [NASTY], "search": [NASTY] } },
    });
    let selection = json!([{ "name": "net", "interface": NASTY }, { "name": NASTY, "namespace": NASTY }]);
    let pod = |name: &str, networks: &str| {
        json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": name, "namespace": "apps",
            "annotations": { "k8s.v1.cni.cncf.io/networks": networks, "v1.multus-cni.io/default-network": NASTY } },
            "spec": { "nodeName": NASTY, "nodeSelector": { NASTY: NASTY }, "containers": [{ "resources": { "limits": { NASTY: "1" } } }] } })
    };
    let objects = [
        pod("p", &selection.to_string()),
        pod(&format!("n{NASTY}"), NASTY),
        json!({ "apiVersion": "k8s.cni.cncf.io/v1", "kind": "NetworkAttachmentDefinition", "metadata": { "name": "net", "namespace": "apps",
            "annotations": { "k8s.v1.cni.cncf.io/resourceName": NASTY } }, "spec": { "config": config.to_string() } }),
        json!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": NASTY, "labels": { NASTY: NASTY } } }),
        json!({ "apiVersion": "sriovnetwork.openshift.io/v1", "kind": "SriovNetworkNodePolicy", "metadata": { "name": NASTY },
            "spec": { "resourceName": NASTY, "nodeSelector": { NASTY: NASTY } } }),
    ];
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join(format!("f{}.yaml", NASTY.replace('/', "_")));
    fs::write(&file, objects.map(|object| object.to_string()).join("\n---\n")).unwrap();
    let page = page(&["explain", "--output", "html", file.to_str().unwrap()]);
    assert_eq!((page.html.matches("<script>").count(), page.html.matches("</script>").count()), (1, 1));

    let Some(mut browser) = Browser::start() else { return };
    browser.open(&page.path, "#open=*");
    let elements = "['script', 'style', 'img', 'title', '[onclick]', '[onerror]', '[onload]'].map((name) => document.querySelectorAll(name).length)";
    assert_eq!(browser.value(elements), json!([1, 1, 0, 1, 0, 0, 0]));
    assert_eq!(strings(browser.value(NAMES)).iter().filter(|name| **name == format!("n{NASTY}")).count(), 1);
    assert!(!strings(browser.value(OPEN)).is_empty());
    assert_eq!(browser.value("typeof window.forged"), "undefined");
    assert_eq!(browser.requests().len(), 1, "the page requests nothing else");
}

/// Even text that was not escaped could not run, nor send anything.
#[test]
fn page_runs_only_its_own_script() {
    let page = sites();
    let Some(mut browser) = Browser::start() else { return };
    let injected =
        page.html.replace("<footer>", "<script>window.forged = 1</script><img src=x onerror=\"window.forged = 1\"><b style=\"color: red\">x</b><footer>");
    fs::write(&page.path, injected).unwrap();
    browser.open(&page.path, "#open=*");
    assert_eq!(browser.value("typeof window.forged"), "undefined");
    assert_ne!(browser.value("getComputedStyle(document.querySelector('[style]')).color"), "rgb(255, 0, 0)");
    // The page's own script opens the objects, and its own style applies.
    assert!(!strings(browser.value(OPEN)).is_empty());
    assert_eq!(browser.value("getComputedStyle(document.querySelector('.figures')).listStyleType"), "none");
    let blocked = "new Promise((done) => { addEventListener('securitypolicyviolation', (event) => done(event.violatedDirective)); \
        const image = new Image(); document.body.append(image); image.src = 'http://127.0.0.1:9/'; })";
    assert_eq!(browser.value(blocked), "img-src");
}
