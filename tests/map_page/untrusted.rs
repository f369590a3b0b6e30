//! Text that was written to be interpreted, in every field that a tenant writes.

use serde_json::json;

use super::*;

const NASTY: &str = "</script><script>window.forged=1</script><!--<script>]]></style></title><img src=x onerror=window.forged=1>\" onclick=\"window.forged=1\" '><svg/onload=window.forged=1>\u{202e}\u{2066}";

#[test]
fn text_of_a_tenant_is_never_interpreted_on_a_map() {
    let nasty = |start: &str| format!("{start}{NASTY}");
    let meta = json!({
        "name": nasty("n"), "namespace": nasty("s"), "labels": { NASTY: NASTY },
        "annotations": { "k8s.v1.cni.cncf.io/resourceName": nasty("r"), "sriovnetwork.openshift.io/owner-ref": NASTY },
    });
    let config = |more: serde_json::Value| {
        let mut config = json!({ "cniVersion": NASTY, "name": nasty("o"), "type": nasty("t"), "master": NASTY, "vlan": 5, "ipam": {
            "type": "whereabouts", "range": "10.0.0.0/24", "network_name": nasty("w"), "addresses": [{ "address": NASTY }] } });
        config.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        config.to_string()
    };
    let objects = [
        json!({ "apiVersion": "k8s.cni.cncf.io/v1", "kind": "NetworkAttachmentDefinition", "metadata": meta, "spec": { "config": config(json!({})) } }),
        json!({ "apiVersion": "k8s.cni.cncf.io/v1", "kind": "NetworkAttachmentDefinition", "metadata": { "name": nasty("m"), "namespace": "a" },
            "spec": { "config": config(json!({ "type": "bridge", "bridge": NASTY })) } }),
        json!({ "apiVersion": "k8s.cni.cncf.io/v1", "kind": "NetworkAttachmentDefinition", "metadata": { "name": nasty("ovn"), "namespace": "a" },
            "spec": { "config": json!({ "cniVersion": "1.0.0", "name": nasty("o"), "type": "ovn-k8s-cni-overlay", "topology": NASTY, "subnets": NASTY, "physicalNetworkName": NASTY }).to_string() } }),
        json!({ "apiVersion": "sriovnetwork.openshift.io/v1", "kind": "SriovNetwork", "metadata": meta,
            "spec": { "resourceName": nasty("r"), "networkNamespace": nasty("s"), "ipam": NASTY } }),
        json!({ "apiVersion": "sriovnetwork.openshift.io/v1", "kind": "SriovNetworkNodePolicy", "metadata": meta,
            "spec": { "resourceName": nasty("r"), "numVfs": 4, "deviceType": NASTY, "linkType": NASTY, "nodeSelector": { NASTY: NASTY },
                "nicSelector": { "vendor": NASTY, "deviceID": NASTY, "pfNames": [nasty("p"), "p#0-1"], "rootDevices": [NASTY] } } }),
        json!({ "apiVersion": "sriovnetwork.openshift.io/v1", "kind": "SriovNetworkNodeState", "metadata": { "name": nasty("w"), "namespace": "op" },
            "spec": { "interfaces": [{ "pciAddress": NASTY, "name": NASTY, "vfGroups": [{ "resourceName": NASTY, "vfRange": "0-3", "policyName": NASTY, "deviceType": NASTY }] }] },
            "status": { "interfaces": [{ "pciAddress": NASTY, "name": NASTY, "vendor": NASTY, "deviceID": NASTY, "linkType": NASTY, "linkSpeed": NASTY }] } }),
        json!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": nasty("w") }, "status": { "allocatable": { nasty("d/r"): "4" } } }),
        json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": nasty("p"), "namespace": nasty("s"), "annotations": {
                "k8s.v1.cni.cncf.io/networks": json!([{ "name": nasty("n"), "interface": NASTY }, { "name": nasty("x"), "namespace": NASTY }]).to_string(),
                "v1.multus-cni.io/default-network": NASTY } },
            "spec": { "nodeName": nasty("w"), "containers": [{ "name": "c", "resources": { "requests": { nasty("r"): "1" } } }] } }),
        json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": nasty("q"), "annotations": { "k8s.v1.cni.cncf.io/networks": NASTY } } }),
        json!({ "apiVersion": "whereabouts.cni.cncf.io/v1alpha1", "kind": "IPPool", "metadata": { "name": format!("{}-10.0.0.0-24", nasty("w")), "namespace": NASTY },
            "spec": { "range": "10.0.0.0/24", "allocations": { "1": { "podref": format!("{}/{}", nasty("s"), nasty("p")), "ifname": NASTY, "id": NASTY } } } }),
        json!({ "apiVersion": "whereabouts.cni.cncf.io/v1alpha1", "kind": "OverlappingRangeIPReservation", "metadata": { "name": NASTY } }),
    ];
    let directory = tempfile::tempdir().unwrap();
    // A file name has no slash.
    let file = directory.path().join(format!("f{}.yaml", NASTY.replace('/', "_")));
    fs::write(&file, objects.map(|object| object.to_string()).join("\n---\n")).unwrap();
    let page = page(file.to_str().unwrap());
    let data = page.html.split_once("id=\"data\">").unwrap().1.split_once("</script>").unwrap().0;
    assert!(!data.contains(['<', '>', '&', '\u{202e}', '\u{2066}']), "the data holds nothing that could end it");
    assert!(serde_json::from_str::<Value>(data).is_ok());
    assert_eq!((page.html.matches("<script").count(), page.html.matches("</script>").count()), (2, 2));

    let Some(mut browser) = Browser::start() else { return };
    let elements = "['script', 'style', 'img', 'title', '[onclick]', '[onerror]', '[onload]'].map((name) => document.querySelectorAll(name).length)";
    for view in ["overview", "network", "nad", "range", "vlan", "resource", "pf", "policy", "ovn", "user", "finding"] {
        browser.open(&page.path, &format!("#view={view}"));
        if view != "overview" {
            assert!(!strings(browser.value(ROWS)).is_empty(), "{view}");
            // Each item opens, with all its relations.
            let opened = browser.value("(() => { const ids = [...document.querySelectorAll('#rows .row')].map((row) => row.dataset.item); for (const id of ids) { document.querySelector(`.row[data-item=\"${CSS.escape(id)}\"]`).click(); if (!document.querySelector('#detail h2')) return id; } return ids.length; })()");
            assert!(opened.as_u64().is_some_and(|number| number > 0), "{view}: {opened}");
        }
        assert_eq!(browser.value(elements), json!([2, 1, 0, 1, 0, 0, 0]), "{view}");
        assert_eq!(browser.value("typeof window.forged"), "undefined", "{view}");
        assert_eq!(browser.requests().len(), 1, "the page requests nothing else");
    }
    // The name is shown whole, with what is not seen in words.
    browser.open(&page.path, "#view=nad&q=onerror");
    let shown = strings(browser.value(ROWS)).concat();
    assert!(
        shown.contains("</script><script>window.forged=1</script><!--") && shown.contains("\\u{202e}\\u{2066}"),
        "{shown}"
    );
    // Its address leads back to it.
    browser.click("#rows .row");
    let fragment = browser.value("location.hash");
    let heading = browser.value(OPEN);
    browser.open(&page.path, fragment.as_str().unwrap());
    assert_eq!(browser.value(OPEN), heading);
    assert_eq!(browser.value("typeof window.forged"), "undefined");
}
