use super::*;

#[test]
fn every_error_has_rules_that_exist() {
    for error in POD_ERRORS {
        assert!(!error.rules.is_empty() || error.cause.is_some(), "{error:?} explains nothing");
        for id in error.rules {
            assert!(RULES.iter().any(|rule| rule.id == *id), "{error:?}");
        }
        assert!(error.words.split('…').all(|part| part.len() > 5), "{error:?}");
    }
}

/// Of two rows that fit, the first is taken, so that a special one must not stand behind a general one.
#[test]
fn no_error_hides_a_later_one() {
    for (index, later) in POD_ERRORS.iter().enumerate() {
        let example = later.words.replace('…', " x ");
        let first = POD_ERRORS.iter().position(|error| error.is_in(&example));
        assert_eq!(first, Some(index), "{later:?}");
    }
}

#[test]
fn messages_are_explained() {
    let ids = |message: &str| PodError::explain(message).map(|rule| rule.id).collect::<Vec<_>>();
    for (message, want) in [
        ("invalid range set 0: RangeStart 10.54.0.10 not in network 10.53.0.0/24", &["ipam/host-local-range"] as &[_]),
        (
            "failed to load netconf: json: cannot unmarshal string into Go struct field NetConf.mtu of type int",
            &["nad/field-type"],
        ),
        (
            "plugin type=\"tuning\" failed (add): invalid args xx for MAC addr: address xx: invalid MAC address",
            &["meta/tuning"],
        ),
        ("invalid args 02:00:00:00:01 for MAC addr: address 02:00:00:00:01: invalid MAC address", &["plugin/mac"]),
        (
            "SRIOV-CNI failed to load netconf: LoadConf(): VF pci addr is required",
            &["nad/resource-name-missing", "nad/resource-name-malformed", "pod/too-few-devices"],
        ),
        ("LoadConf(): non-zero vlan id must be configured to set vlan QoS to a non-zero value", &["sriov/vlan-qos"]),
        ("LoadConf(): vlan Proto  invalid: value must be '802.1Q' or '802.1ad'", &["sriov/vlan-proto"]),
        (
            "LoadConf(): failed to load netconf: json: cannot unmarshal bool into Go struct field NetConf.SriovNetConf.vlan of type int",
            &["nad/field-type"],
        ),
        (
            "failed to load netconf: json: cannot unmarshal bool into Go struct field NetConf.bridge of type string",
            &["nad/field-type"],
        ),
        (
            "failed to add route '{10.9.0.0 ffff0000} via 10.0.0.1 dev net1 metric 0 (Scope: universe, Table: 0)': file exists",
            &["ipam/route"],
        ),
        ("not in network RangeStart", &[]),
        ("Back-off pulling image", &[]),
        ("", &[]),
    ] {
        assert_eq!(ids(message), want, "{message}");
    }
}

#[test]
fn the_preamble_is_cut_off() {
    let sandbox =
        "Failed to create pod sandbox: rpc error: code = Unknown desc = failed to setup network for sandbox \"1c4d\": ";
    let multus = "plugin type=\"multus\" name=\"multus-cni-network\" failed (add): ";
    for (rest, want) in [
        ("[default/p/b926:net]: error adding container to network \"net\": Link not found", "Link not found"),
        (
            "[default/p/b926:net]: error adding container to network \"net\": plugin type=\"vrf\" failed (add): x",
            "plugin type=\"vrf\" failed (add): x",
        ),
        (
            "Multus: [default/p/b926]: error loading k8s delegates k8s args: TryLoadPodDelegates: error in getting k8s network for pod: GetNetworkDelegates: failed getting the delegate: GetCNIConfig: x",
            "GetCNIConfig: x",
        ),
        (
            "Multus: [default/p/b926]: error loading k8s delegates k8s args: parsePodNetworkAnnotation: failed to mac: x",
            "parsePodNetworkAnnotation: failed to mac: x",
        ),
        (
            "Multus: [default/p/b926]: error loading k8s delegates k8s args: TryLoadPodDelegates: error in getting k8s network for pod: GetNetworkDelegates: namespace isolation enabled",
            "GetNetworkDelegates: namespace isolation enabled",
        ),
        ("netplugin failed: \"panic\"", "netplugin failed: \"panic\""),
    ] {
        assert_eq!(without_preamble(&format!("{sandbox}{multus}{rest}")), want);
    }
    assert_eq!(without_preamble("Back-off pulling image"), "Back-off pulling image");
}
